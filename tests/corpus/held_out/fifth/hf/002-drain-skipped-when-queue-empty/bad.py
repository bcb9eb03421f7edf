"""Checkpoint manager of a Megatron engine with background writers."""
import logging
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import distributed as dist

logger = logging.getLogger(__name__)


def write_file(path: str, blob: dict) -> None:
    tmp = path + ".tmp"
    torch.save(blob, tmp)
    Path(tmp).rename(path)


@dataclass
class WriterPool:
    device: torch.device
    pending: list = field(default_factory=list)
    failed: int = 0

    def submit(self, path: str, blob: dict) -> None:
        proc = get_context("spawn").Process(target=write_file, args=(path, blob))
        proc.start()
        self.pending.append(proc)

    def reap(self) -> None:
        """Drop writers of this rank that have ended; never blocks."""
        alive = []
        for proc in self.pending:
            if proc.is_alive():
                alive.append(proc)
            else:
                self.failed += int(proc.exitcode != 0)
        self.pending = alive

    def drain(self) -> None:
        for proc in self.pending:
            proc.join()
            self.failed += int(proc.exitcode != 0)
        self.pending = []
        bad = torch.tensor([self.failed], device=self.device)
        dist.all_reduce(bad)
        if bad.item():
            raise RuntimeError(f"{int(bad.item())} checkpoint shard(s) were not written")


class CheckpointManager:
    def __init__(self, model, root: Path, device: torch.device):
        self.model = model
        self.root = root
        self.pool = WriterPool(device)

    def wait_async_saves(self) -> None:
        if not self.pool.pending:
            return
        self.pool.drain()

    def save(self, step: int) -> None:
        self.wait_async_saves()
        folder = self.root / f"step_{step}"
        folder.mkdir(parents=True, exist_ok=True)
        state = {k: v.detach().cpu() for k, v in self.model.state_dict().items()}
        self.pool.submit(str(folder / f"shard_{dist.get_rank()}.pt"), state)

    def on_step_end(self, step: int, every: int) -> None:
        self.pool.reap()
        if step % every == 0:
            self.save(step)

    def load(self, step: int) -> None:
        self.wait_async_saves()
        shard = self.root / f"step_{step}" / f"shard_{dist.get_rank()}.pt"
        self.model.load_state_dict(torch.load(shard, map_location="cpu"))
        logger.info("loaded %s", shard)
