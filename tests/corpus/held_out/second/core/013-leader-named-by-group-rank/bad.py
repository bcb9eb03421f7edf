"""Every node reads its settings once and shares them inside the node."""
import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist


class Topology:
    def __init__(self, per_node: int):
        world = dist.get_world_size()
        assert world % per_node == 0
        self.per_node = per_node
        self.node = dist.get_rank() // per_node
        blocks = [list(range(s, s + per_node)) for s in range(0, world, per_node)]
        groups = [dist.new_group(block) for block in blocks]
        self.group = groups[self.node]

    @property
    def leads(self) -> bool:
        return dist.get_rank() % self.per_node == 0

    def share(self, make):
        box = [make() if self.leads else None]
        dist.broadcast_object_list(box, src=0, group=self.group)
        return box[0]


def settings():
    return {"host": socket.gethostname(), "threads": os.cpu_count()}


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    node = Topology(per_node=int(os.environ.get("PER_NODE", "2")))
    mine = node.share(settings)
    threads = torch.tensor([mine["threads"]])
    dist.all_reduce(threads)
    print(dist.get_rank(), mine, threads.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
