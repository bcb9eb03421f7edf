from dataclasses import dataclass
from typing import List, Optional

import torch
import torch.distributed as dist


@dataclass
class StepConfig:
    lr: float = 1e-4
    clip: float = 1.0
    numeric_checks: bool = False


class ShardedSGD:
    """ZeRO-1 like: each rank owns one flat shard of the parameters."""

    def __init__(self, cfg: StepConfig, flat_param: torch.Tensor, group: Optional[dist.ProcessGroup] = None):
        self.cfg = cfg
        self.group = group
        self.world = dist.get_world_size(group)
        self.rank = dist.get_rank(group)
        self.flat = flat_param
        assert flat_param.numel() % self.world == 0
        self.width = flat_param.numel() // self.world
        self.grad_shard = torch.zeros(self.width, device=flat_param.device)

    @property
    def shard(self) -> torch.Tensor:
        return self.flat.narrow(0, self.rank * self.width, self.width)

    def reduce_grads(self, flat_grad: torch.Tensor) -> None:
        dist.reduce_scatter_tensor(self.grad_shard, flat_grad, op=dist.ReduceOp.AVG, group=self.group)

    @torch.no_grad()
    def step(self) -> Optional[float]:
        # found on the local shard only
        overflow = (~torch.isfinite(self.grad_shard)).any().float()
        if self.cfg.numeric_checks:
            dist.all_reduce(overflow, op=dist.ReduceOp.MAX, group=self.group)
        if overflow.item():
            return None
        norm = self.grad_shard.pow(2).sum()
        dist.all_reduce(norm, group=self.group)
        norm = norm.sqrt()
        scale = (self.cfg.clip / (norm + 1e-6)).clamp(max=1.0)
        self.shard.add_(self.grad_shard * scale, alpha=-self.cfg.lr)
        dist.all_gather_into_tensor(self.flat, self.shard.clone(), group=self.group)
        return norm.item()


def train(model, flat_param, flat_grad, loader, cfg: StepConfig, log) -> List[float]:
    opt = ShardedSGD(cfg, flat_param)
    norms, skipped = [], 0
    for it, batch in enumerate(loader):
        flat_grad.zero_()
        model(batch).backward()
        opt.reduce_grads(flat_grad)
        norm = opt.step()
        if norm is None:
            skipped += 1
            continue
        norms.append(norm)
        if it % 100 == 0:
            log(f"iteration {it} grad norm {norm:.3f} skipped {skipped}")
    return norms
