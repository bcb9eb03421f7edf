from functools import lru_cache
from typing import Iterable, List

import torch
import torch.distributed as dist
from megatron.core import parallel_state as mpu


@lru_cache(maxsize=None)
def _domain_group(domain: str, width: int):
    """Group of the consecutive `width` ranks this rank is in."""
    mine = None
    for start in range(0, dist.get_world_size(), width):
        ranks = list(range(start, start + width))
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = group
    return mine


def split_params(model: torch.nn.Module):
    dense, expert = [], []
    for p in model.parameters():
        if p.requires_grad:
            (dense if getattr(p, "allreduce", True) else expert).append(p)
    return dense, expert


class ShardedMuon:
    """Orthogonalises each matrix on one rank of the domain and broadcasts it."""

    def __init__(self, params: Iterable[torch.nn.Parameter], group, lr: float, momentum: float = 0.95):
        self.params = list(params)
        self.group = group
        self.members = dist.get_process_group_ranks(group)
        self.lr, self.momentum = lr, momentum
        self.buffers = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self) -> None:
        for i, (p, buf) in enumerate(zip(self.params, self.buffers)):
            owner = self.members[i % len(self.members)]
            buf.mul_(self.momentum).add_(p.grad if p.grad is not None else torch.zeros_like(p))
            if dist.get_rank() == owner and p.ndim == 2:
                u, _, v = torch.linalg.svd(buf.float(), full_matrices=False)
                p.add_((u @ v).to(p.dtype), alpha=-self.lr)
            dist.broadcast(p, src=owner, group=self.group)


def build_optimizers(model: torch.nn.Module, lr: float) -> List[ShardedMuon]:
    dense, expert = split_params(model)
    dense_width = mpu.get_tensor_model_parallel_world_size()
    expert_width = mpu.get_expert_tensor_parallel_world_size()
    optimizers = []
    if dense:
        optimizers.append(ShardedMuon(dense, _domain_group("dense", dense_width), lr))
    if expert:
        optimizers.append(ShardedMuon(expert, _domain_group("expert", expert_width), lr))
    return optimizers
