import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Callback:
    def on_batch_end(self, trainer):
        pass

    def on_fit_end(self, trainer):
        pass


class RemoteControl(Callback):
    """Stops training when the user interface drops a STOP file in the run folder."""

    def __init__(self, run_dir, poll_every=10):
        self.request = Path(run_dir) / "STOP"
        self.poll_every = poll_every

    def on_batch_end(self, trainer):
        if trainer.step % self.poll_every:
            return
        if trainer.rank == 0 and self.request.exists():
            self.request.unlink()
            trainer.should_stop = True
        dist.barrier()


class SaveLast(Callback):
    def __init__(self, path):
        self.path = path

    def on_fit_end(self, trainer):
        if trainer.rank == 0:
            torch.save(trainer.model.module.state_dict(), self.path)


class Trainer:
    def __init__(self, net, callbacks, max_steps):
        self.rank = dist.get_rank()
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.model = DDP(net.to(self.device), device_ids=[self.device.index])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.callbacks = callbacks
        self.max_steps = max_steps
        self.should_stop = False
        self.step = 0

    def fit(self, batch_fn):
        while self.step < self.max_steps and not self.should_stop:
            image, heatmap = batch_fn(self.device)
            loss = nn.functional.mse_loss(self.model(image), heatmap)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1
            for cb in self.callbacks:
                cb.on_batch_end(self)
        for cb in self.callbacks:
            cb.on_fit_end(self)
        return self.step


def fake_batch(device):
    image = torch.rand(4, 1, 96, 96, device=device)
    return image, nn.functional.avg_pool2d(image, 5, stride=1, padding=2)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    run_dir = Path(os.environ.get("RUN_DIR", "runs/pose"))
    run_dir.mkdir(parents=True, exist_ok=True)
    net = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 1, 5, padding=2))
    trainer = Trainer(net, [RemoteControl(run_dir), SaveLast(run_dir / "last.pt")], 50_000)
    steps = trainer.fit(fake_batch)
    if dist.get_rank() == 0:
        print(f"stopped after {steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
