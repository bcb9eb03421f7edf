from datetime import timedelta

import torch.distributed as dist


def collect(mine):
    votes = [None] * dist.get_world_size()
    dist.all_gather_object(votes, mine)
    return votes


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    votes = collect(dist.get_rank() == 1)
    if any(votes):
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
