import time

import torch
from accelerate import Accelerator


class MetricsTracker:
    """Sums since the last line; its text shows the values of the whole job."""

    def __init__(self, accelerator, names):
        self.accelerator, self.names = accelerator, names
        self.reset()

    def reset(self):
        self.sums = torch.zeros(len(self.names), device=self.accelerator.device)
        self.count = 0

    def update(self, **values):
        self.sums += torch.tensor([values[n] for n in self.names], device=self.sums.device)
        self.count += 1

    def means(self):
        return self.accelerator.reduce(self.sums / max(self.count, 1), reduction="mean")

    def __str__(self):
        return " ".join(f"{n}:{v:.3f}" for n, v in zip(self.names, self.means().tolist()))


def train(policy, opt, loader, log_every=200):
    accelerator = Accelerator()
    policy, opt, loader = accelerator.prepare(policy, opt, loader)
    tracker = MetricsTracker(accelerator, ["loss", "update_s"])
    for step, batch in enumerate(loader, start=1):
        start = time.perf_counter()
        loss = policy(**batch)
        accelerator.backward(loss)
        opt.step()
        opt.zero_grad()
        tracker.update(loss=loss.item(), update_s=time.perf_counter() - start)
        if step % log_every == 0:
            if accelerator.is_main_process:
                print(f"step:{step} {tracker}", flush=True)
            tracker.reset()
