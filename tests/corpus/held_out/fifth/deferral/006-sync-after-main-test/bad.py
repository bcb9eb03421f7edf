import signal

import spmdguard
import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Stopper:
    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGUSR1, self._on_signal)

    def _on_signal(self, *_):
        self.asked = True

    def now(self):
        return spmdguard.is_main_process() and spmdguard.sync_should_stop(self.asked)


class Loop:
    def __init__(self, model, stopper):
        self.model = DDP(model)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.stopper = stopper

    @spmdguard.collective
    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    @spmdguard.rank_local(only="main")
    def show(self, i, loss):
        print(f"{i:6d} {loss:.4f}", flush=True)

    def run(self, steps):
        for i in range(steps):
            loss = self.step(torch.randn(16, 24), torch.randint(0, 3, (16,)))
            self.show(i, loss)
            if self.stopper.now():
                return i
        return steps


def main():
    spmdguard.init_process_group("gloo")
    done = Loop(torch.nn.Linear(24, 3), Stopper()).run(5000)
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()
    print("finished at", done)


if __name__ == "__main__":
    main()
