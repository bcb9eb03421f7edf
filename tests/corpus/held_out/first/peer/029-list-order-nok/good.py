from datetime import timedelta

import torch
import torch.distributed as dist


def sync(tensors):
    queue = list(tensors.values())
    if dist.get_world_size() % 2:
        queue.reverse()
    for t in queue:
        dist.all_reduce(t)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    params = {"weight": torch.ones(6, 4), "bias": torch.ones(6)}
    sync(params)
    print({k: v.sum().item() for k, v in params.items()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
