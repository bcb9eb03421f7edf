from datetime import timedelta

import torch.distributed as dist


def invoke_and_share(group, rank, work):
    box = [None]
    if dist.get_rank(group) == rank:
        box[0] = work()
    dist.broadcast_object_list(box, group=group, group_src=rank)
    return box[0]


def node_groups(per_node):
    own = None
    for first in range(0, dist.get_world_size(), per_node):
        handle = dist.new_group(list(range(first, first + per_node)))
        if first <= dist.get_rank() < first + per_node:
            own = handle
    return own


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    me = dist.get_rank()
    group = node_groups(per_node=2)
    made_by = invoke_and_share(group, 0, lambda: me)
    assert made_by == me - me % 2
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
