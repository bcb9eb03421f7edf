import logging
from pathlib import Path

import torch
import torch.distributed as dist

log = logging.getLogger("exp")


class ExperimentState:
    def __init__(self, model, optimizer, scheduler, exp_dir):
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.dir = Path(exp_dir) / "checkpoints"
        self.step, self.best = 0, float("inf")

    @property
    def shard_path(self) -> Path:
        return self.dir / f"mp_rank_{dist.get_rank():03d}" / "last.ckpt"

    def save(self):
        self.shard_path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "scheduler": self.scheduler.state_dict(), "step": self.step, "best": self.best},
                   self.shard_path)
        dist.barrier()

    def _restore(self):
        payload = torch.load(self.shard_path, map_location="cpu")
        self.model.load_state_dict(payload["model"])
        self.optimizer.load_state_dict(payload["optimizer"])
        self.scheduler.load_state_dict(payload["scheduler"])
        shared = [(payload["step"], payload["best"])]
        dist.broadcast_object_list(shared, src=0)
        self.step, self.best = shared[0]
        dist.barrier()

    def resume_if_exists(self) -> bool:
        per_rank = [None] * dist.get_world_size()
        dist.all_gather_object(per_rank, self.shard_path.exists())
        found = all(per_rank)
        if not found:
            log.warning("There were no checkpoints in %s. Training from scratch.", self.dir)
            return False
        log.info("Resuming from %s", self.shard_path)
        self._restore()
        return True


def run(state: ExperimentState, loader, steps: int, save_every: int):
    state.resume_if_exists()
    batches = iter(loader)
    while state.step < steps:
        loss = state.model(next(batches))
        loss.backward()
        state.optimizer.step()
        state.scheduler.step()
        state.optimizer.zero_grad()
        state.step += 1
        if state.step % save_every == 0:
            state.save()
