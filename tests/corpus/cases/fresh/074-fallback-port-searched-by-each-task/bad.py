import os
import socket
import subprocess

import torch
import torch.distributed as dist


def _is_free_port(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        return s.connect_ex(("localhost", port)) != 0


def _find_free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def init_dist_slurm(backend, port=None):
    proc_id = int(os.environ["SLURM_PROCID"])
    ntasks = int(os.environ["SLURM_NTASKS"])
    node_list = os.environ["SLURM_NODELIST"]
    torch.cuda.set_device(proc_id % torch.cuda.device_count())
    addr = subprocess.getoutput(f"scontrol show hostname {node_list} | head -n1")
    if port is not None:
        os.environ["MASTER_PORT"] = str(port)
    elif "MASTER_PORT" not in os.environ:
        if _is_free_port(29500):
            os.environ["MASTER_PORT"] = "29500"
        else:
            os.environ["MASTER_PORT"] = str(_find_free_port())
    os.environ.setdefault("MASTER_ADDR", addr)
    os.environ["WORLD_SIZE"] = str(ntasks)
    os.environ["RANK"] = str(proc_id)
    dist.init_process_group(backend=backend)


if __name__ == "__main__":
    init_dist_slurm("nccl")
    total = torch.ones(1, device="cuda")
    dist.all_reduce(total)
    print(total.item())
    dist.destroy_process_group()
