from datetime import timedelta
from enum import Enum, auto

import torch
import torch.distributed as dist


class Role(Enum):
    CHIEF = auto()
    HELPER = auto()

    @classmethod
    def of(cls, rank):
        return cls.CHIEF if rank == 0 else cls.HELPER


def deal(role, world):
    part = torch.zeros(2)
    match role:
        case Role.CHIEF:
            parts = list(torch.arange(2.0 * world).reshape(world, 2))
            dist.scatter(part, parts, src=0)
        case Role.HELPER:
            dist.broadcast(part, src=0)
    return part


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
print(deal(Role.of(dist.get_rank()), dist.get_world_size()))
dist.destroy_process_group()
