import logging
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("pretrain")


class Preemption:
    def __init__(self):
        self.pending = False
        signal.signal(signal.SIGUSR1, self._note)

    def _note(self, signum, frame):
        self.pending = True


class Pretrainer:
    def __init__(self, model, loader, lr):
        self.model = DistributedDataParallel(model)
        self.loader = loader
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.preemption = Preemption()
        self.step = 0

    def train_step(self, batch):
        loss = self.model(batch).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.step += 1

    def should_leave(self):
        votes = [None] * dist.get_world_size()
        dist.all_gather_object(votes, self.preemption.pending)
        return any(votes)

    def save(self):
        if dist.get_rank() == 0:
            torch.save({"step": self.step, "model": self.model.module.state_dict()}, "preempted.pt")

    def run(self, epochs):
        for _ in range(epochs):
            for batch in self.loader:
                self.train_step(batch)
                if self.should_leave():
                    log.warning("leaving at step %d", self.step)
                    self.save()
                    return
        self.save()


def main(model, loader):
    dist.init_process_group("gloo")
    Pretrainer(model, loader, lr=3e-4).run(epochs=2)
    dist.destroy_process_group()
