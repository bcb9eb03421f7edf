import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Checkpointer:
    def __init__(self, folder, recoverables):
        self.folder, self.recoverables = folder, recoverables

    def save_checkpoint(self, name):
        names = [name]
        dist.broadcast_object_list(names, src=0)
        if dist.get_rank() == 0:
            path = os.path.join(self.folder, names[0])
            os.makedirs(path, exist_ok=True)
            for key, item in self.recoverables.items():
                torch.save(item.state_dict(), os.path.join(path, f"{key}.ckpt"))
        dist.barrier()


class Brain:
    def __init__(self, module, interval_minutes):
        self.module = DDP(module)
        self.optimizer = torch.optim.Adadelta(self.module.parameters())
        self.interval = interval_minutes
        self.checkpointer = Checkpointer("/tmp/brain", {"module": module, "optimizer": self.optimizer})

    def fit_batch(self, batch):
        loss = self.module(batch).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def fit(self, epochs, batches):
        for epoch in range(epochs):
            last = time.time()
            for step, batch in enumerate(batches):
                self.fit_batch(batch)
                if self.interval > 0 and time.time() - last >= self.interval * 60.0:
                    self.checkpointer.save_checkpoint(f"CKPT+e{epoch}s{step}")
                    last = time.time()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=10))
    brain = Brain(torch.nn.Linear(32, 32), interval_minutes=15)
    brain.fit(100, [torch.randn(16, 32) for _ in range(5000)])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
