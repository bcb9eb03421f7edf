import logging
import os
import shutil
import time

import torch
import torch.distributed as dist

log = logging.getLogger("resume")


def node_signal_name(run_name: str) -> str:
    # the suffix must be the same for all the ranks of this node and fresh for each job
    return f".{run_name}-{os.environ['TORCHELASTIC_RUN_ID']}-{os.environ['TORCHELASTIC_RESTART_COUNT']}.done"


def fetch(remote: str, local: str) -> None:
    os.makedirs(os.path.dirname(local), exist_ok=True)
    shutil.copyfile(remote, local + ".part")
    os.replace(local + ".part", local)


def download_latest(remote: str, local: str, run_name: str) -> bool:
    """True when the checkpoint is there on every rank; long downloads are kept out of the collectives."""
    local_rank = int(os.environ["LOCAL_RANK"])
    signal_file = os.path.join(os.path.dirname(local), node_signal_name(run_name))
    if local_rank == 0:
        try:
            fetch(remote, local)
        except OSError as err:
            log.warning("no checkpoint from %s: %s", remote, err)
        finally:
            os.makedirs(os.path.dirname(signal_file), exist_ok=True)
            with open(signal_file, "w") as f:
                f.write("done")

    if local_rank != 0:
        while not os.path.exists(signal_file):
            time.sleep(0.5)
    dist.barrier()
    if local_rank == 0:
        os.remove(signal_file)
    dist.barrier()

    present = torch.tensor([int(os.path.exists(local))], device="cuda")
    dist.all_reduce(present, op=dist.ReduceOp.MIN)
    return bool(present.item())


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.Linear(512, 512).cuda()
    start = 0
    if download_latest("/mnt/store/run7/latest.pt", "/scratch/run7/latest.pt", "run7"):
        state = torch.load("/scratch/run7/latest.pt", map_location="cuda")
        model.load_state_dict(state["model"])
        start = state["step"]
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    opt = torch.optim.AdamW(ddp.parameters())
    for step in range(start, 1000):
        ddp(torch.randn(16, 512, device="cuda")).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
