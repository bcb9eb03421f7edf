from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Optional

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import fully_shard


@dataclass
class CheckpointCallback:
    root: Path
    every: int
    pending: Optional[Any] = field(default=None, repr=False)

    def wait(self):
        if self.pending is None:
            return
        try:
            self.pending.result()
        finally:
            self.pending = None

    def on_step_end(self, trainer):
        if trainer.step % self.every:
            return
        self.wait()
        weights, moments = get_state_dict(trainer.model, trainer.optimizer)
        self.pending = dcp.async_save(
            {"model": weights, "optimizer": moments, "step": trainer.step},
            checkpoint_id=str(self.root / f"global_step_{trainer.step}"),
        )


class Trainer:
    def __init__(self, callback):
        net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)]).cuda()
        for layer in net:
            fully_shard(layer)
        self.model = fully_shard(net)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.callback = callback
        self.step = 0

    def train(self, steps):
        while self.step < steps:
            x = torch.randn(16, 256, device="cuda")
            self.model(x).square().mean().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.step += 1
            self.callback.on_step_end(self)


def main():
    dist.init_process_group("cuda:nccl,cpu:gloo", timeout=timedelta(minutes=10))
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    trainer = Trainer(CheckpointCallback(Path("ckpt"), every=500))
    trainer.train(500)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
