from __future__ import annotations

import queue
import shutil
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist


class BackgroundUploader:
    """Copies artefacts to the bucket mount in a daemon thread, one per rank."""

    def __init__(self, bucket: Path, device: torch.device):
        self.bucket, self.device = bucket, device
        self.pending: queue.Queue[Path] = queue.Queue()
        self.errors: queue.Queue[Exception] = queue.Queue()
        self.in_flight = 0
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, path: Path) -> None:
        self.pending.put(path)

    def _work(self) -> None:
        while True:
            path = self.pending.get()
            try:
                shutil.copy2(path, self.bucket / path.name)
            except OSError as err:
                self.errors.put(err)
            finally:
                self.pending.task_done()

    def _busy_anywhere(self) -> bool:
        mine = self.pending.unfinished_tasks > 0
        flag = torch.tensor([int(mine)], dtype=torch.int32, device=self.device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return flag.item() == 1

    def drain(self) -> None:
        """Called by all ranks when training ends."""
        while self._busy_anywhere():
            time.sleep(2.0)
        failed = torch.tensor([self.errors.qsize()], device=self.device)
        dist.all_reduce(failed)
        if failed.item():
            first = self.errors.get_nowait() if not self.errors.empty() else None
            raise RuntimeError(f"{failed.item()} uploads failed in the job") from first


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    work = Path(f"/tmp/artefacts/{rank}")
    work.mkdir(parents=True, exist_ok=True)
    up = BackgroundUploader(Path("/mnt/bucket"), torch.device("cpu"))
    for step in range(200):
        if step % 50 == 0 and rank % 2 == 0:  # only the even ranks own shards here
            f = work / f"shard-{step}-{rank}.pt"
            torch.save({"step": step}, f)
            up.submit(f)
    up.drain()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
