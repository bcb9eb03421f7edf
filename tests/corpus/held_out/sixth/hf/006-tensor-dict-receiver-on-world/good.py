import os
from typing import Dict, Optional

import torch
import torch.distributed
from torch.distributed import ProcessGroup

from rollout.engine import ShardedEngine
from rollout.queue import RequestQueue

_TP_GROUP: Optional[ProcessGroup] = None
_TP_RANKS = []


def init_tensor_parallel(tp_size: int):
    global _TP_GROUP, _TP_RANKS
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    for start in range(0, world, tp_size):
        ranks = list(range(start, start + tp_size))
        group = torch.distributed.new_group(ranks)
        if rank in ranks:
            _TP_GROUP, _TP_RANKS = group, ranks


def broadcast_tensor_dict(data: Optional[Dict[str, torch.Tensor]], src: int,
                          group: ProcessGroup) -> Dict[str, torch.Tensor]:
    rank = torch.distributed.get_rank()
    if rank == src:
        meta = [(name, t.dtype, tuple(t.shape)) for name, t in data.items()]
        torch.distributed.broadcast_object_list([meta], src=src, group=group)
        for name, _, _ in meta:
            torch.distributed.broadcast(data[name], src=src, group=group)
        return data
    box = [None]
    torch.distributed.broadcast_object_list(box, src=src, group=group)
    data = {}
    for name, dtype, shape in box[0]:
        data[name] = torch.empty(shape, dtype=dtype, device="cuda")
        torch.distributed.broadcast(data[name], src=src, group=group)
    return data


def main(tp_size: int = 4, steps: int = 1000):
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    init_tensor_parallel(tp_size)
    driver = torch.distributed.get_rank() == _TP_RANKS[0]
    engine = ShardedEngine("weights/policy", group=_TP_GROUP)
    queue = RequestQueue(_TP_RANKS[0] // tp_size) if driver else None
    for _ in range(steps):
        batch = queue.next_batch(device="cuda") if driver else None
        batch = broadcast_tensor_dict(batch, src=_TP_RANKS[0], group=_TP_GROUP)
        tokens = engine.step(batch)
        if driver:
            queue.complete(tokens.tolist())
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
