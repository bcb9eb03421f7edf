import json
import math
import os
from typing import Optional

import torch
from lightning.fabric import Fabric


class SpikeGuard:
    """Skips the optimizer step when the loss jumps on any rank, and records the batch."""

    def __init__(self, fabric: Fabric, warmup: int = 50, factor: float = 3.0, finite_only: bool = False,
                 path: Optional[str] = None):
        self.fabric, self.warmup, self.factor, self.finite_only = fabric, warmup, factor, finite_only
        self.path = path or "skip_batches.json"
        self.mean, self.n = 0.0, 0
        self.skipped = []

    def _local_spike(self, loss: float, batch_idx: int) -> bool:
        if batch_idx < self.warmup or self.n == 0:
            return False
        return not math.isfinite(loss) or loss > self.factor * self.mean

    def _any(self, flag: bool) -> bool:
        total = self.fabric.all_reduce(torch.tensor(float(flag), device=self.fabric.device), reduce_op="sum")
        return total.item() > 0

    def ok(self, loss: torch.Tensor, batch_idx: int) -> bool:
        value = loss.item()
        if self._any(self._local_spike(value, batch_idx)):
            self.skipped.append(batch_idx)
            if self.fabric.global_rank == 0:
                with open(self.path, "w") as f:
                    json.dump(self.skipped, f)
            self.fabric.barrier()
            return False
        if self.finite_only or not self._any(not math.isfinite(value)):
            if math.isfinite(value):
                self.n += 1
                self.mean += (value - self.mean) / self.n
        return True


def main():
    fabric = Fabric(accelerator="cuda", devices=4, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(3 + fabric.global_rank)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    model, opt = fabric.setup(model, torch.optim.AdamW(model.parameters(), lr=float(os.environ.get("LR", "1e-3"))))
    guard = SpikeGuard(fabric)
    for i in range(1000):
        x = torch.randn(32, 64, device=fabric.device)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        opt.zero_grad()
        if guard.ok(loss.detach(), i):
            fabric.backward(loss)
            opt.step()
    fabric.print("skipped", guard.skipped)


if __name__ == "__main__":
    main()
