import math

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def split_by_tokens(lengths, max_tokens, dp_group=None):
    """Indices of the samples of every micro-batch, about max_tokens each."""
    count = math.ceil(sum(lengths) / max_tokens)
    if dp_group is not None:
        shared = torch.tensor([count], device="cuda")
        dist.all_reduce(shared, op=dist.ReduceOp.MAX, group=dp_group)
        count = int(shared.item())
    count = min(count, len(lengths))
    bins, loads = [[] for _ in range(count)], [0] * count
    for idx in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        target = loads.index(min(loads))
        bins[target].append(idx)
        loads[target] += lengths[idx]
    return bins


class PolicyActor:
    def __init__(self, model: FSDP, optimizer, dp_group, clip=0.2, max_tokens=16384):
        self.model, self.optimizer = model, optimizer
        self.dp_group = dp_group
        self.clip, self.max_tokens = clip, max_tokens

    def _logprobs(self, ids, mask):
        logits = self.model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        logp = torch.log_softmax(logits.float(), dim=-1)
        return logp.gather(-1, ids[:, 1:, None]).squeeze(-1)

    def update(self, batch):
        lengths = batch["mask"].sum(-1).tolist()
        micro_batches = split_by_tokens(lengths, self.max_tokens)
        self.optimizer.zero_grad()
        stats = []
        for indices in micro_batches:
            ids, mask = batch["ids"][indices], batch["mask"][indices]
            new = self._logprobs(ids, mask)
            ratio = (new - batch["old_logp"][indices]).exp()
            adv = batch["advantages"][indices]
            surrogate = torch.minimum(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv)
            answer = batch["answer_mask"][indices]
            loss = -(surrogate * answer).sum() / answer.sum().clamp(min=1)
            (loss * len(indices) / len(lengths)).backward()
            stats.append(loss.detach())
        grad_norm = self.model.clip_grad_norm_(1.0)
        self.optimizer.step()
        return {"actor/loss": torch.stack(stats).mean().item(), "actor/grad_norm": grad_norm.item()}
