from enum import IntEnum

import torch
import torch.distributed as dist


class Tag(IntEnum):
    HEADER = 1
    BODY = 2


def push(rows):
    dist.send(torch.tensor(rows.shape), dst=1, tag=Tag.HEADER)
    dist.send(rows, dst=1, tag=Tag.BODY)


def pull():
    shape = torch.zeros(2, dtype=torch.int64)
    dist.recv(shape, src=0, tag=Tag.HEADER)
    rows = torch.empty(*shape.tolist())
    dist.recv(rows, src=0, tag=Tag.BODY)
    return rows


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    push(torch.randn(4, 3))
elif dist.get_rank() == 1:
    print(pull().shape)
dist.destroy_process_group()
