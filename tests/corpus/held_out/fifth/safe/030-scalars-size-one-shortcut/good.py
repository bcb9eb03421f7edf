import os
from typing import List, Sequence

import torch
from torch import distributed as dist

_TP_GROUP = None


def init_tensor_parallel(tp: int) -> None:
    global _TP_GROUP
    world = dist.get_world_size()
    assert world % tp == 0, f"world {world} is no multiple of {tp}"
    for start in range(0, world, tp):
        ranks = range(start, start + tp)
        group = dist.new_group(list(ranks))
        if dist.get_rank() in ranks:
            _TP_GROUP = group


def broadcast_scalars(values: Sequence[float], count: int) -> List[float]:
    """Values of TP rank 0; the other ranks may pass anything."""
    if dist.get_world_size(_TP_GROUP) == 1:
        return list(values)
    src = dist.get_process_group_ranks(_TP_GROUP)[0]
    if dist.get_rank() == src:
        assert len(values) == count
        buf = torch.tensor(values, dtype=torch.float64, device="cuda")
    else:
        buf = torch.zeros(count, dtype=torch.float64, device="cuda")
    dist.broadcast(buf, src, group=_TP_GROUP)
    return buf.tolist()


class MicrobatchPlanner:
    """TP rank 0 reads the lengths; its peers get the plan."""

    def __init__(self, budget: int, seed: int):
        self.budget = budget
        self.gen = torch.Generator().manual_seed(seed)

    def next(self):
        plan = (0, 0, 0)
        if dist.get_rank(_TP_GROUP) == 0:
            lengths = torch.randint(32, 2048, (64,), generator=self.gen)
            total = int(lengths.sum())
            plan = (max(1, -(-total // self.budget)), total, int((lengths ** 2).sum()))
        n_micro, tokens, flops = broadcast_scalars(plan, 3)
        return int(n_micro), tokens, flops


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    init_tensor_parallel(int(os.environ.get("TP", "1")))
    planner = MicrobatchPlanner(8192, seed=7 + dist.get_rank())
    weight = torch.zeros(1024, device="cuda")
    for step in range(20):
        n_micro, tokens, _ = planner.next()
        for _ in range(n_micro):
            partial = torch.randn(1024, device="cuda")
            dist.all_reduce(partial, group=_TP_GROUP)
            weight += partial / n_micro
        if dist.get_rank() == 0:
            print(step, n_micro, tokens)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
