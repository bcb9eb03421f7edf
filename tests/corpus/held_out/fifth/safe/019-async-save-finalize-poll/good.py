import multiprocessing as mp
import os
import time
from collections import deque
from typing import NamedTuple

import torch
import torch.distributed as dist


class Pending(NamedTuple):
    step: int
    proc: mp.Process
    folder: str


def _write(path: str, payload: bytes) -> None:
    with open(path, "wb") as f:
        f.write(payload)
        f.flush()
        os.fsync(f.fileno())


class AsyncSaver:
    def __init__(self, root: str):
        self.root = root
        self.queue: deque = deque()
        self.ctx = mp.get_context("spawn")

    def schedule(self, step: int, payload: bytes) -> None:
        folder = os.path.join(self.root, f"step{step}")
        os.makedirs(folder, exist_ok=True)
        p = self.ctx.Process(target=_write, args=(f"{folder}/{dist.get_rank()}.bin", payload))
        p.start()
        self.queue.append(Pending(step, p, folder))

    def _alive_anywhere(self, local_alive: bool) -> int:
        t = torch.tensor([int(local_alive)])
        dist.all_reduce(t)
        return int(t.item())

    def maybe_finalize(self, blocking: bool = False) -> list:
        done = []
        while self.queue:
            head = self.queue[0]
            if blocking:
                head.proc.join()
            if self._alive_anywhere(head.proc.is_alive()) > 0:
                if not blocking:
                    break
                time.sleep(0.1)
                continue
            worst = torch.tensor([abs(head.proc.exitcode)])
            dist.all_reduce(worst, op=dist.ReduceOp.MAX)
            if worst.item():
                raise RuntimeError(f"async save of step {head.step} failed on some rank")
            if dist.get_rank() == 0:
                with open(os.path.join(self.root, "latest"), "w") as f:
                    f.write(str(head.step))
            self.queue.popleft()
            done.append(head.step)
        return done


def main():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
    opt = torch.optim.Adam(model.parameters())
    saver = AsyncSaver("/ckpt/async")
    for step in range(1, 501):
        model(torch.randn(8, 256)).sum().backward()
        opt.step()
        opt.zero_grad()
        saver.maybe_finalize()
        if step % 100 == 0:
            saver.schedule(step, bytes(1 << 22))
    saver.maybe_finalize(blocking=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
