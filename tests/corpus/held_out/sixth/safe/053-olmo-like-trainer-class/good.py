import logging
import math
import os
import shutil
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Deque, List, Optional

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType

log = logging.getLogger(__name__)


def rank() -> int:
    return dist.get_rank()


def synchronize_value(value, device):
    t = torch.tensor(float(value), device=device)
    dist.broadcast(t, 0)
    return t.item()


def clear_folder(path: Path):
    if rank() == 0:
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    dist.barrier()


@dataclass
class SpeedMonitor:
    starts: Deque[float] = field(default_factory=lambda: deque(maxlen=50))

    def tick(self):
        self.starts.append(time.monotonic())

    def rate(self):
        if len(self.starts) < 2:
            return {}
        return {"steps/s": (len(self.starts) - 1) / (self.starts[-1] - self.starts[0])}


class Trainer:
    def __init__(self, cfg, fsdp_model, optim, scheduler, loader, evaluators, tracker=None):
        self.cfg, self.model, self.optim, self.sched = cfg, fsdp_model, optim, scheduler
        self.loader, self.evaluators = loader, evaluators
        self.tracker = tracker if rank() == 0 else None
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.step, self.start_time = 0, time.time()
        self.saved: List[Path] = []
        self.saved_ephemeral: List[Path] = []

    # --- checkpoints -------------------------------------------------------
    def _finish(self, tmp: Path, final: Path):
        dist.barrier()
        if rank() == 0:
            if final.exists():
                shutil.rmtree(final)
            tmp.replace(final)
            link = final.parent / "latest"
            link.unlink(missing_ok=True)
            link.symlink_to(final.name)
        dist.barrier()

    def _drop(self, paths: List[Path], keep: int):
        while len(paths) > keep >= 0:
            victim = paths.pop(0)
            if rank() == 0:
                shutil.rmtree(victim, ignore_errors=True)
            dist.barrier()

    def save_sharded(self, ephemeral=False):
        name = f"step{self.step}"
        final = Path(self.cfg.save_folder) / name
        tmp = final.with_name(name + "-tmp")
        clear_folder(tmp)
        with FSDP.state_dict_type(self.model, StateDictType.LOCAL_STATE_DICT):
            weights = self.model.state_dict()
        torch.save({"model": weights, "optim": self.optim.state_dict(), "sched": self.sched.state_dict(),
                    "step": self.step}, tmp / f"rank{rank()}.pt")
        self._finish(tmp, final)
        bucket = self.saved_ephemeral if ephemeral else self.saved
        bucket.append(final)
        self._drop(bucket, 1 if ephemeral else self.cfg.keep)
        return final

    def save_unsharded(self):
        final = Path(self.cfg.save_folder) / f"step{self.step}-unsharded"
        tmp = final.with_name(final.name + "-tmp")
        clear_folder(tmp)
        conf = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
        with FSDP.state_dict_type(self.model, StateDictType.FULL_STATE_DICT, conf):
            weights = self.model.state_dict()
        if rank() == 0:
            torch.save(weights, tmp / "model.pt")
        del weights
        self._finish(tmp, final)

    def restore(self):
        latest = Path(self.cfg.save_folder) / "latest"
        if not synchronize_value(rank() == 0 and latest.exists(), self.device):
            return
        blob = torch.load(latest / f"rank{rank()}.pt", map_location=self.device, weights_only=False)
        with FSDP.state_dict_type(self.model, StateDictType.LOCAL_STATE_DICT):
            self.model.load_state_dict(blob["model"])
        self.optim.load_state_dict(blob["optim"])
        self.sched.load_state_dict(blob["sched"])
        self.step = blob["step"]
        dist.barrier()

    # --- loop --------------------------------------------------------------
    def cancelled(self):
        """(stop now, extra steps) as seen by rank 0, told to all."""
        stop, extra = False, 0
        if rank() == 0:
            if self.cfg.time_limit and time.time() - self.start_time >= self.cfg.time_limit:
                stop, extra, why = True, 0, "time limit"
            elif self.tracker is not None:
                try:
                    tags = self.tracker.tags()
                    stop = any(t.lower() in ("cancel", "canceled") for t in tags)
                    extra = self.cfg.extra_steps
                    why = "tag"
                except (ConnectionError, TimeoutError):
                    log.info("tracker is out of reach")
            if stop:
                log.warning("run is being cancelled (%s)", why)
        stop = bool(synchronize_value(stop, self.device))
        extra = int(synchronize_value(extra, self.device)) if stop else 0
        return stop, extra

    def train_step(self, batch):
        ids = batch["input_ids"].to(self.device)
        micro = ids.split(self.cfg.micro_batch)
        total = torch.zeros((), device=self.device)
        for i, part in enumerate(micro):
            logits = self.model(part).logits
            ce = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), part[:, 1:].flatten()) / len(micro)
            ce.backward()
            total += ce.detach()
        norm = self.model.clip_grad_norm_(self.cfg.max_norm)
        self.optim.step()
        self.sched.step()
        self.optim.zero_grad(set_to_none=True)
        metrics = {}
        if self.step % self.cfg.log_interval == 0:
            dist.all_reduce(total, op=dist.ReduceOp.AVG)
            if math.isnan(total.item()):
                raise ValueError("nan loss encountered")
            metrics = {"loss": total.item(), "norm": norm.item(), "lr": self.sched.get_last_lr()[0]}
        return metrics

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        out = {}
        for ev in self.evaluators:
            ev.reset()
            for _, batch in zip(range(ev.num_batches), ev.loader):
                ev.update(self.model(batch["input_ids"].to(self.device)).logits, batch)
            out.update(ev.compute())
        self.model.train()
        return out

    def fit(self):
        speed, stop_at, first = SpeedMonitor(), self.cfg.max_steps, True
        cancel_seen = False
        for batch in self.loader:
            if self.step >= stop_at:
                break
            self.step += 1
            speed.tick()
            metrics = self.train_step(batch)
            if metrics and rank() == 0:
                metrics.update(speed.rate())
                log.info("step %d %s", self.step, metrics)
                if self.tracker is not None:
                    self.tracker.log(metrics, step=self.step)
            if not cancel_seen and self.step % self.cfg.cancel_interval == 0:
                cancel_seen, extra = self.cancelled()
                if cancel_seen:
                    stop_at = min(stop_at, self.step + extra)
            if self.step % self.cfg.save_interval == 0:
                self.save_sharded()
            elif self.cfg.ephemeral_interval and self.step % self.cfg.ephemeral_interval == 0:
                self.save_sharded(ephemeral=True)
            if self.cfg.eval_interval and self.step % self.cfg.eval_interval == 0:
                scores = self.evaluate()
                if rank() == 0:
                    log.info("eval %s", scores)
        if self.step % self.cfg.save_interval:
            self.save_sharded()
        if self.cfg.save_final_unsharded:
            self.save_unsharded()

    def close(self):
        if self.tracker is not None:
            self.tracker.finish()


def run(cfg, make):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    trainer: Optional[Trainer] = Trainer(cfg, **make(cfg))
    trainer.restore()
    dist.barrier()
    try:
        trainer.fit()
    finally:
        trainer.close()
    dist.destroy_process_group()
