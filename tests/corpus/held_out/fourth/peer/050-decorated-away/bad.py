import functools

import torch.distributed as dist


def on_lead(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        if dist.get_rank() == 0:
            return fn(*args, **kwargs)
        return None

    return inner


@on_lead
def table_of(stats):
    rows = [None] * dist.get_world_size()
    dist.all_gather_object(rows, stats)
    for i, row in enumerate(rows):
        print(i, row)


dist.init_process_group("gloo")
table_of({"seen": 10 + dist.get_rank()})
dist.destroy_process_group()
