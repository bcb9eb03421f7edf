import collections
import math

import torch
import torch.distributed as dist


class SpikeGuard:
    def __init__(self, window=200, factor=5.0):
        self.history = collections.deque(maxlen=window)
        self.factor = factor
        self.skipped = 0

    def local_verdict(self, value: float) -> bool:
        if not math.isfinite(value):
            return True
        if len(self.history) < 50:
            return False
        mean = sum(self.history) / len(self.history)
        return value > self.factor * mean

    def verdict(self, loss: torch.Tensor) -> bool:
        value = loss.detach().float().item()
        bad = self.local_verdict(value)
        flag = torch.tensor([int(bad)], device=loss.device)
        if dist.is_initialized():
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        skip = bool(flag.item())
        if not skip:
            self.history.append(value)
        return skip


def train_epoch(ddp, loader, optimizer, scaler, epoch, logger):
    guard = SpikeGuard()
    for i, batch in enumerate(loader):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = ddp(batch["inputs"].cuda(non_blocking=True), batch["target"].cuda(non_blocking=True))
        if guard.verdict(loss):
            guard.skipped += 1
            optimizer.zero_grad(set_to_none=True)
            if dist.get_rank() == 0:
                logger.warning("epoch %d batch %d skipped on all ranks", epoch, i)
            continue
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
    return guard.skipped
