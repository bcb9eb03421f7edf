"""Model-parallel groups, made only where they are needed (fast at large scale)."""
import datetime
from dataclasses import dataclass
from typing import List, Optional

import torch
import torch.distributed as dist


@dataclass
class ModelParallelState:
    tp_group: Optional[dist.ProcessGroup] = None
    dp_group: Optional[dist.ProcessGroup] = None

    @property
    def dp_size(self) -> int:
        return dist.get_world_size(self.dp_group)


_STATE = ModelParallelState()


def _tp_ranks(world: int, tp: int) -> List[List[int]]:
    return [list(range(i, i + tp)) for i in range(0, world, tp)]


def _dp_ranks(world: int, tp: int) -> List[List[int]]:
    return [list(range(i, world, tp)) for i in range(tp)]


def create_group(ranks: List[int], minutes: int) -> dist.ProcessGroup:
    return dist.new_group(
        ranks,
        timeout=datetime.timedelta(minutes=minutes),
        use_local_synchronization=True,
        group_desc=f"mp_{ranks[0]}_{len(ranks)}",
    )


def initialize_model_parallel(tp: int, minutes: int = 30) -> ModelParallelState:
    world, rank = dist.get_world_size(), dist.get_rank()
    if world % tp:
        raise ValueError(f"world size {world} isn't a multiple of tp {tp}")
    for ranks in _tp_ranks(world, tp):
        if rank in ranks:
            _STATE.tp_group = create_group(ranks, minutes)
    for ranks in _dp_ranks(world, tp):
        if rank in ranks:
            _STATE.dp_group = create_group(ranks, minutes)
    return _STATE


def average_losses(losses: List[torch.Tensor]) -> torch.Tensor:
    packed = torch.stack([l.detach().float() for l in losses])
    dist.all_reduce(packed, group=_STATE.dp_group)
    return packed / _STATE.dp_size


def main(build, loader, tp: int = 2) -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    state = initialize_model_parallel(tp)
    model = build(state.tp_group).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step, batch in enumerate(loader):
        loss = model(batch)
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=state.dp_group)
        opt.step()
        opt.zero_grad()
        mean = average_losses([loss])
        if dist.get_rank() == 0 and step % 20 == 0:
            print(step, mean.tolist())
    dist.destroy_process_group()
