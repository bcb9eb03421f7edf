import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def download(root):
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "digits.pt").exists():
        torch.save(torch.rand(1000, 16), root / "digits.pt")


def load_digits(root, local_rank):
    # the leader of a node fetches the file, its neighbours wait for it
    if local_rank > 0:
        dist.barrier()
    download(root)
    if local_rank == 0:
        dist.barrier()
    return torch.load(root / "digits.pt")


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    local_rank = int(os.environ["LOCAL_RANK"])
    digits = load_digits(Path("/tmp/digits"), local_rank)
    part = digits[dist.get_rank()::dist.get_world_size()]
    stats = torch.stack([part.sum(), torch.tensor(float(part.numel()))])
    dist.all_reduce(stats)
    if dist.get_rank() == 0:
        print("mean", (stats[0] / stats[1]).item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
