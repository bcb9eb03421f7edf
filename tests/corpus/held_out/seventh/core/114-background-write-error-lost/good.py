from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


class ShardWriter:
    def __init__(self, folder):
        self.folder, self.rank = Path(folder), dist.get_rank()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pool, self.job, self.step = ThreadPoolExecutor(1), None, None

    def _write(self, step, shard):
        if self.rank == 1 and step == 30:
            raise OSError("no space left on device")
        torch.save(shard, self.folder / f"step{step}_rank{self.rank}.pt")

    def start(self, step, shard):
        self.finish()
        self.step = step
        self.job = self.pool.submit(self._write, step, shard.clone())

    def finish(self):
        if self.step is None:
            return
        error = self.job.exception()  # waits for the thread
        reports = [None] * dist.get_world_size()
        dist.all_gather_object(reports, None if error is None else f"rank {self.rank}: {error}")
        if any(reports):
            raise RuntimeError("; ".join(r for r in reports if r))
        if self.rank == 0:
            (self.folder / "latest").write_text(str(self.step))
        self.step = None


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    writer, shard = ShardWriter("/tmp/shards_async"), torch.zeros(8)
    for step in range(1, 31):
        grad = torch.randn(8)
        dist.all_reduce(grad)
        shard -= 0.01 * grad
        if step % 10 == 0:
            writer.start(step, shard)
    writer.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
