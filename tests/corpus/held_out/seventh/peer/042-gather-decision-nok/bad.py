from datetime import timedelta

import torch.distributed as dist


def collect(mine):
    votes = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(mine, votes, dst=0)
    return votes or []


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    votes = collect(dist.get_rank() == 1)
    if any(votes):
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
