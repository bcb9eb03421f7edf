import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


@dataclass
class ActorConfig:
    max_token_len: int = 16384
    clip_ratio: float = 0.2
    grad_clip: float = 1.0


def prepare_dynamic_batch(batch, max_token_len, dp_group=None):
    """Cut a mini batch so that no micro batch has (much) more than max_token_len tokens."""
    lengths = batch["attention_mask"].sum(dim=-1).tolist()
    count = max(1, math.ceil(sum(lengths) / max_token_len))
    count = min(count, len(lengths))
    if dp_group is not None:
        t = torch.tensor([count], device="cuda")
        dist.all_reduce(t, op=dist.ReduceOp.MAX, group=dp_group)
        count = int(t.item())
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [[{k: v[i] for k, v in batch.items()} for i in order[m::count]] for m in range(count)]


def collate(rows):
    return {k: torch.stack([r[k] for r in rows]) for k in rows[0]}


class DataParallelActor:
    def __init__(self, cfg: ActorConfig, module: FSDP, optimizer, dp_group):
        self.cfg = cfg
        self.module = module
        self.optimizer = optimizer
        self.dp_group = dp_group

    def _loss(self, micro):
        logits = self.module(micro["input_ids"], micro["attention_mask"])
        logp = torch.log_softmax(logits[:, :-1], -1)
        logp = logp.gather(-1, micro["input_ids"][:, 1:, None]).squeeze(-1)
        ratio = torch.exp(logp - micro["old_logp"])
        adv = micro["advantage"]
        clipped = ratio.clamp(1 - self.cfg.clip_ratio, 1 + self.cfg.clip_ratio)
        mask = micro["response_mask"]
        return -(torch.min(ratio * adv, clipped * adv) * mask).sum() / mask.sum().clamp(min=1)

    def update_policy(self, mini_batches):
        stats = []
        # every rank gets the same number of rows in each mini batch
        for mini in mini_batches:
            micros = prepare_dynamic_batch(mini, self.cfg.max_token_len)
            self.optimizer.zero_grad()
            for rows in micros:
                loss = self._loss(collate(rows)) / len(micros)
                loss.backward()
            norm = self.module.clip_grad_norm_(self.cfg.grad_clip)
            self.optimizer.step()
            stats.append(float(norm))
        return stats
