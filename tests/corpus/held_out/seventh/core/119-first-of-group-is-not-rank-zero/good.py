import random
from datetime import timedelta

import torch
import torch.distributed as dist

# run with 4 processes
PAIRS = [[0, 1], [2, 3]]


def once_per_group(group, make):
    """Run make() on the first process of the group and hand the result to the others."""
    box = [make() if dist.get_rank(group) == 0 else None]
    dist.broadcast_object_list(box, src=dist.get_global_rank(group, 0), group=group)
    return box[0]


def plan_tables():
    tables = [f"table{i}" for i in range(6)]
    random.shuffle(tables)
    return {"first": tables[:3], "second": tables[3:]}


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    groups = [dist.new_group(pair) for pair in PAIRS]
    group = groups[rank // 2]
    plan = once_per_group(group, plan_tables)
    mine = plan["first"] if dist.get_rank(group) == 0 else plan["second"]
    seen = torch.tensor([len(mine)])
    dist.all_reduce(seen)
    print(rank, mine, seen.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
