import os
import socket

import torch
import torch.distributed as dist


def get_open_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.bind(("", 0))
        s.listen(1)
        return s.getsockname()[1]


class Cluster:
    def __init__(self):
        self.rank = int(os.environ["SLURM_PROCID"])
        self.world_size = int(os.environ["SLURM_NTASKS"])
        self.local_rank = int(os.environ["SLURM_LOCALID"])

    def connect(self, backend="nccl"):
        torch.cuda.set_device(self.local_rank)
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = str(get_open_port())
        dist.init_process_group(backend, rank=self.rank, world_size=self.world_size)


def main():
    cluster = Cluster()
    cluster.connect()
    value = torch.tensor([float(cluster.rank)], device="cuda")
    dist.all_reduce(value)
    print(cluster.rank, value.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
