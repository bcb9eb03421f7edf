import shutil
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist


@dataclass
class CkptConfig:
    root: str = "outputs"
    interval: int = 100
    keep: int = 2


@dataclass
class Progress:
    step: int = 0
    total_tokens: int = 0


@dataclass
class CheckpointManager:
    cfg: CkptConfig
    rank: int
    ckpt_steps: list = field(default_factory=list)

    @property
    def is_master(self):
        return self.rank == 0

    def step_path(self, step) -> Path:
        return Path(self.cfg.root) / "checkpoints" / f"step_{step}"

    def save(self, model, optimizer, progress: Progress):
        path = self.step_path(progress.step)
        if self.is_master:
            path.mkdir(parents=True, exist_ok=True)
        dist.barrier()
        shard = {"optimizer": optimizer.state_dict(), "progress": vars(progress)}
        if self.is_master:
            shard["model"] = model.state_dict()
        torch.save(shard, path / f"rank_{self.rank}.pt")
        self.ckpt_steps.append(progress.step)

    def maybe_clean(self):
        while len(self.ckpt_steps) > self.cfg.keep:
            step = self.ckpt_steps.pop(0)
            old = self.step_path(step)
            if self.is_master:
                shutil.rmtree(old, ignore_errors=True)


def train(model, batches, cfg=CkptConfig()):
    dist.init_process_group("gloo")
    manager = CheckpointManager(cfg, dist.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    progress = Progress()
    for progress.step in range(1, 1001):
        batch = batches[progress.step % len(batches)]
        loss = model(batch).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        progress.total_tokens += batch.numel()
        if progress.step % cfg.interval == 0:
            manager.save(model.module, optimizer, progress)
            dist.barrier()
            manager.maybe_clean()
    dist.destroy_process_group()
