import os
from datetime import timedelta

import torch
import torch.distributed as dist


def node_groups(per_node):
    mine = None
    for first in range(0, dist.get_world_size(), per_node):
        ranks = list(range(first, first + per_node))
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = group
    return mine


def call_on_leader(group, leader, fn):
    box = [None]
    if dist.get_rank(group) == leader:
        box[0] = fn()
    dist.broadcast_object_list(box, src=leader, group=group)
    return box[0]


def sharding_plan():
    host = os.uname().nodename
    return {"host": host, "tables": {f"t{i}": i % 2 for i in range(6)}}


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    per_node = int(os.environ["LOCAL_WORLD_SIZE"])
    group = node_groups(per_node)
    plan = call_on_leader(group, 0, sharding_plan)
    rows = torch.tensor([len(plan["tables"])])
    dist.all_reduce(rows)
    if dist.get_rank() == 0:
        print("tables over all ranks:", rows.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
