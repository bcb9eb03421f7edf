import logging
from pathlib import Path

import torch
from accelerate import Accelerator

log = logging.getLogger(__name__)


class Saver:
    def __init__(self, accelerator: Accelerator, root: str, every: int):
        self.accelerator, self.root, self.every = accelerator, Path(root), every

    def maybe(self, step: int) -> None:
        if step % self.every:
            return
        folder = self.root / f"step_{step}"
        self.accelerator.save_state(str(folder))
        if self.accelerator.is_main_process:
            log.info("state of step %d in %s", step, folder)


def fit(net, loader, steps=1000):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    saver = Saver(accelerator, "states", every=100)
    for step, (x, y) in zip(range(1, steps + 1), loader):
        loss = torch.nn.functional.mse_loss(net(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        saver.maybe(step)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        log.info("finished after %d steps", steps)
    accelerator.end_training()
