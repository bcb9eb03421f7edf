import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

# torchrun --nnodes=2 --nproc_per_node=2 ...
CACHE = Path(os.environ.get("NODE_CACHE", "/tmp/node_cache"))


def download(path):
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(torch.randn(400, 3, generator=torch.Generator().manual_seed(0)), path)


def get_data():
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    path = CACHE / "cifar_like.pt"
    if local_rank != 0:
        dist.barrier()  # let the first process of the node fetch it
    else:
        download(path)
    if local_rank == 0:
        dist.barrier()  # releases the rest, on every node
    return torch.load(path)[rank :: dist.get_world_size()]


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    data = get_data()
    mean = data.sum(0)
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        print("mean", (mean / 400).tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
