import os
import queue
import threading

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class AsyncSaver:
    """Copy to host in the training thread, write to slow storage in the background."""

    def __init__(self, folder):
        self.folder = folder
        self.jobs = queue.Queue(maxsize=2)
        self.thread = threading.Thread(target=self._run, name="ckpt-writer", daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            item = self.jobs.get()
            if item is None:
                return
            step, state = item
            tmp = os.path.join(self.folder, f".{step}.tmp")
            torch.save(state, tmp)
            os.replace(tmp, os.path.join(self.folder, f"model_{step}.pt"))

    def submit(self, step, model):
        state = {k: v.detach().to("cpu", copy=True) for k, v in model.state_dict().items()}
        self.jobs.put((step, state))

    def close(self):
        self.jobs.put(None)
        self.thread.join()


class Trainer:
    def __init__(self, model, loader, folder):
        self.rank = dist.get_rank()
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        self.model = DistributedDataParallel(model.to(self.device), device_ids=[self.device.index])
        self.optim = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.loader = loader
        self.saver = None
        if self.rank == 0:
            os.makedirs(folder, exist_ok=True)
            self.saver = AsyncSaver(folder)

    def fit(self, epochs):
        step = 0
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for x, y in self.loader:
                loss = torch.nn.functional.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
                self.optim.zero_grad()
                loss.backward()
                self.optim.step()
                step += 1
            if self.saver is not None:
                self.saver.submit(step, self.model.module)


def main(model, make_loader, folder="snapshots", epochs=90):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    trainer = Trainer(model, make_loader(dist.get_rank(), dist.get_world_size()), folder)
    trainer.fit(epochs)
    dist.barrier()
    dist.destroy_process_group()
    if trainer.saver is not None:
        trainer.saver.close()
    if trainer.rank == 0:
        print("done, snapshots in", folder)
