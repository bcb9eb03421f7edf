import json
import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist


def node_group(per_node):
    rank, mine = dist.get_rank(), None
    for first in range(0, dist.get_world_size(), per_node):
        members = list(range(first, first + per_node))
        group = dist.new_group(members)
        if rank in members:
            mine = group
    return mine


def run_on_leader(fn, group, leader=0):
    """fn runs once per node, everybody of the node gets its result."""
    box = [None]
    if dist.get_rank(group) == leader:
        box[0] = fn()
    dist.broadcast_object_list(box, src=leader, group=group)
    return box[0]


def probe():
    return {"host": socket.gethostname(), "cores": os.cpu_count()}


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    per_node = int(os.environ.get("PER_NODE", "2"))  # 4 processes: two "nodes"
    group = node_group(per_node)
    info = run_on_leader(probe, group)
    cores = torch.tensor([info["cores"] / per_node])
    dist.all_reduce(cores)
    if dist.get_rank() == 0:
        print(json.dumps(info), "cores in the job:", int(cores.item()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
