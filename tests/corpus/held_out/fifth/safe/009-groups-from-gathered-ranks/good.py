import logging
import os
from typing import Dict, Tuple

import torch
import torch.distributed as dist

log = logging.getLogger(__name__)
_CACHE: Dict[str, dist.ProcessGroup] = {}


def _ranks_for(spec: str) -> Tuple[int, ...]:
    """The members of the group that this rank is in: 'node', 'set4', 'mod2'..."""
    rank, world = dist.get_rank(), dist.get_world_size()
    if spec == "self":
        return (rank,)
    if spec == "node":
        size = int(os.environ["LOCAL_WORLD_SIZE"])
        start = rank - rank % size
        return tuple(range(start, start + size))
    if spec.startswith("set"):
        size = int(spec[3:])
        start = rank - rank % size
        return tuple(range(start, min(start + size, world)))
    if spec.startswith("mod"):
        k = int(spec[3:])
        return tuple(range(rank % k, world, k))
    raise ValueError(spec)


def get_group(spec: str) -> dist.ProcessGroup:
    if spec in _CACHE:
        return _CACHE[spec]
    mine = _ranks_for(spec)
    log.info("process group %s: ranks %s", spec, mine)
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, mine)
    group, _ = dist.new_subgroups_by_enumeration([list(r) for r in sorted(set(every))])
    _CACHE[spec] = group
    return group


def sync_buffers(module: torch.nn.Module, spec: str) -> None:
    group = get_group(spec)
    size = dist.get_world_size(group)
    for buf in module.buffers():
        if buf.is_floating_point():
            dist.all_reduce(buf, group=group)
            buf.div_(size)


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8)).cuda()
    for step in range(20):
        net(torch.randn(4, 3, 32, 32, device="cuda"))
        sync_buffers(net, "node" if step % 2 else "mod2")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
