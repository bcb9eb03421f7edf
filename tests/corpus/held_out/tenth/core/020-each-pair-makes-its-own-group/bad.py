import random
from datetime import timedelta

import torch
import torch.distributed as dist


def shuffled_pairs(world, seed):
    order = list(range(world))
    random.Random(seed).shuffle(order)
    return [sorted(order[i : i + 2]) for i in range(0, world, 2)]


def my_pair_group(pairs):
    rank = dist.get_rank()
    members = next(pair for pair in pairs if rank in pair)
    return dist.new_group(members)


def gossip(value, group):
    other = value.clone()
    dist.all_reduce(other, group=group)
    return other / 2


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    world = dist.get_world_size()
    if world % 2:
        raise SystemExit("an even number of processes, please")
    group = my_pair_group(shuffled_pairs(world, seed=5))
    value = torch.full((3,), float(dist.get_rank()))
    for _ in range(4):
        value = gossip(value, group)
    dist.all_reduce(value)
    print(f"rank {dist.get_rank()}: {(value / world).tolist()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
