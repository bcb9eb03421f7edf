import math
from typing import Dict, List

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

Batch = Dict[str, torch.Tensor]


def split_by_tokens(batch: Batch, limit: int) -> List[Batch]:
    """Local micro batches; their number depends on this rank's image and text tokens."""
    sizes = (batch["attention_mask"].sum(-1) + batch["visual_tokens"]).tolist()
    micros, rows, used = [], [], 0
    for i, n in enumerate(sizes):
        if rows and used + n > limit:
            micros.append({k: v[rows] for k, v in batch.items()})
            rows, used = [], 0
        rows.append(i)
        used += n
    micros.append({k: v[rows] for k, v in batch.items()})
    return micros


def make_dummy(batch: Batch) -> Batch:
    dummy = {k: v[:1].clone() for k, v in batch.items()}
    dummy["response_mask"].zero_()
    return dummy


class VLActor:
    def __init__(self, module: FSDP, optimizer, token_limit: int = 8192, max_norm: float = 1.0):
        self.module = module
        self.optimizer = optimizer
        self.token_limit = token_limit
        self.max_norm = max_norm

    def _global_count(self, local: int, device) -> int:
        t = torch.tensor([local], device=device)
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        return int(t.item())

    def _loss(self, micro: Batch) -> torch.Tensor:
        # pixel_values is always there (blank image for text-only rows): the vision tower always runs
        logits = self.module(micro["input_ids"], micro["attention_mask"], micro["pixel_values"])
        logp = torch.log_softmax(logits[:, :-1].float(), -1)
        logp = logp.gather(-1, micro["input_ids"][:, 1:, None]).squeeze(-1)
        mask = micro["response_mask"][:, 1:]
        return -(logp * micro["advantage"][:, None] * mask).sum() / mask.sum().clamp(min=1)

    def update(self, batch: Batch) -> Dict[str, float]:
        micros = split_by_tokens(batch, self.token_limit)
        steps = self._global_count(len(micros), batch["input_ids"].device)
        seen: List[float] = []
        self.optimizer.zero_grad()
        for i in range(steps):
            real = i < len(micros)
            micro = micros[i] if real else make_dummy(batch)
            loss = self._loss(micro)
            loss = loss / len(micros) if real else loss * 0.0
            loss.backward()
            if real:
                seen.append(loss.item())
        norm = self.module.clip_grad_norm_(self.max_norm)
        if math.isfinite(float(norm)):  # total norm: same value on all ranks
            self.optimizer.step()
        return {"loss": sum(seen), "grad_norm": float(norm), "dummies": steps - len(micros)}
