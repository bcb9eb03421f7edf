import logging
import os
import time

import spmdguard
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger(__name__)


class Deadline:
    def __init__(self, minutes):
        self.until = time.time() + 60 * minutes

    @property
    def passed(self):
        return time.time() >= self.until


@spmdguard.collective
def optimise(model, opt, batch):
    opt.zero_grad(set_to_none=True)
    loss = model(batch).abs().mean()
    loss.backward()
    opt.step()
    return loss.detach()


@spmdguard.rank_local
def trace(folder, step, loss):
    with open(os.path.join(folder, f"r{os.environ['RANK']}.csv"), "a") as fh:
        fh.write(f"{step},{loss.item()}\n")


def main():
    spmdguard.init_process_group("gloo")
    model = DDP(torch.nn.Linear(8, 8))
    opt = torch.optim.Adam(model.parameters())
    deadline = Deadline(float(os.environ.get("MINUTES", 55)))
    step = 0
    while step < 1_000_000:
        loss = optimise(model, opt, torch.randn(64, 8))
        trace("traces", step, loss)
        step += 1
        if deadline.passed:
            log.warning("time is up at step %d", step)
            break
        if spmdguard.sync_should_stop():
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
