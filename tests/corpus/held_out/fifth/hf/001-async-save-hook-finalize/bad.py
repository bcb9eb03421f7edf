"""Actor side of an RL trainer: Megatron-like asynchronous checkpointing."""
import logging
import multiprocessing as mp
import os
from typing import Callable, List, Optional

import torch
import torch.distributed as dist

log = logging.getLogger("actor")


def _write_shard(path: str, payload: dict) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(payload, path)


class AsyncSaveQueue:
    def __init__(self) -> None:
        self.pending: List[mp.Process] = []

    def schedule(self, proc: mp.Process) -> None:
        proc.start()
        self.pending.append(proc)

    def maybe_finalize(self, blocking: bool = False) -> int:
        finished = 0
        while self.pending:
            proc = self.pending[0]
            if blocking:
                proc.join()
            done = torch.tensor([int(not proc.is_alive())], device="cuda")
            dist.all_reduce(done, op=dist.ReduceOp.MIN)
            if done.item() == 0:
                break
            self.pending.pop(0)
            finished += 1
        return finished


class TrainActor:
    def __init__(self, model, optimizer, save_dir: str, hook: Optional[Callable[[str], None]] = None):
        self.model = model
        self.optimizer = optimizer
        self.save_dir = save_dir
        self.post_save_hook = hook
        self.queue = AsyncSaveQueue()
        self.rank = dist.get_rank()

    def train_step(self, batch) -> float:
        loss = self.model(**batch).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        value = loss.detach()
        dist.all_reduce(value, op=dist.ReduceOp.AVG)
        return value.item()

    def save_model(self, step: int) -> None:
        self.queue.maybe_finalize(blocking=True)
        target = os.path.join(self.save_dir, f"iter_{step:07d}")
        shard = os.path.join(target, f"rank{self.rank}.pt")
        state = {k: v.cpu() for k, v in self.model.state_dict().items()}
        ctx = mp.get_context("spawn")
        self.queue.schedule(ctx.Process(target=_write_shard, args=(shard, state)))
        if self.post_save_hook is not None and self.rank == 0:
            self.queue.maybe_finalize(blocking=True)
            self.post_save_hook(target)
        log.info("scheduled checkpoint %s", target)


def fit(actor: TrainActor, loader, total_steps: int, save_every: int) -> None:
    batches = iter(loader)
    for step in range(1, total_steps + 1):
        loss = actor.train_step(next(batches))
        if step % save_every == 0:
            actor.save_model(step)
            log.info("step %d loss %.4f", step, loss)
    actor.queue.maybe_finalize(blocking=True)
