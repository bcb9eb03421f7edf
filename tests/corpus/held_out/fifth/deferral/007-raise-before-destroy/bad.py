from pathlib import Path

import spmdguard
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Callback:
    def on_step(self, trainer):
        ...

    def on_end(self, trainer):
        ...


class SampleWriter(Callback):
    def __init__(self, folder, every=100):
        self.folder, self.every = Path(folder), every

    @spmdguard.rank_local
    def _write(self, trainer):
        out = trainer.model.module(torch.zeros(1, 4))
        torch.save(out, self.folder / f"{trainer.step}-{trainer.rank}.pt")

    def on_step(self, trainer):
        if trainer.step % self.every == 0:
            self._write(trainer)

    def on_end(self, trainer):
        spmdguard.raise_if_deferred_error()


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = DDP(model), callbacks
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.rank, self.step = torch.distributed.get_rank(), 0

    def fit(self, steps):
        for self.step in range(steps):
            self.opt.zero_grad()
            self.model(torch.randn(8, 4)).square().mean().backward()
            self.opt.step()
            for cb in self.callbacks:
                cb.on_step(self)
            if spmdguard.sync_should_stop():
                break
        for cb in self.callbacks:
            cb.on_end(self)
        spmdguard.barrier("end of fit")


def main():
    spmdguard.init_process_group("gloo")
    Trainer(torch.nn.Linear(4, 2), [SampleWriter("samples")]).fit(1000)
    spmdguard.destroy_process_group()


if __name__ == "__main__":
    main()
