import os

import torch
import torch.distributed as dist


def run_on_leader(group, leader, fn, *args):
    """Run fn on one rank of the group and give the result to all of it."""
    result = [None]
    if dist.get_rank(group) == leader:
        result[0] = fn(*args)
    dist.broadcast_object_list(result, src=leader, group=group)
    return result[0]


class NodeLocal:
    def __init__(self, per_node):
        self.node = int(os.environ["RANK"]) // per_node
        self.group = None
        for n in range(dist.get_world_size() // per_node):
            ranks = list(range(n * per_node, (n + 1) * per_node))
            group = dist.new_group(ranks)
            if n == self.node:
                self.group = group

    def plan(self, tables):
        return run_on_leader(self.group, 0, self._solve, tables)

    @staticmethod
    def _solve(tables):
        return sorted(tables, key=lambda t: -t["rows"])


def main():
    dist.init_process_group("gloo")
    local = NodeLocal(int(os.environ["LOCAL_WORLD_SIZE"]))
    order = local.plan([{"name": "user", "rows": 10**6}, {"name": "item", "rows": 10**7}])
    print(dist.get_rank(), [t["name"] for t in order], torch.get_num_threads())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
