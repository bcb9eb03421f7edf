import json
import os
import queue
import time
from pathlib import Path

import torch
import torch.distributed as dist


class TraceWriter:
    """Chrome trace per rank, with clock offsets, merged by the first rank of each node."""

    def __init__(self, folder: str, wait: int, active: int, repeat: int):
        self.folder = Path(folder)
        self.wait, self.active, self.repeat = wait, active, repeat
        self.events: queue.Queue = queue.Queue()
        self.recording = False

    def _phase(self, step: int) -> str:
        cycle, pos = divmod(step, self.wait + self.active)
        if cycle >= self.repeat or pos < self.wait:
            return "skip"
        return "save" if pos == self.wait + self.active - 1 else "active"

    def batch_start(self, step: int) -> None:
        phase = self._phase(step)
        if phase != "skip" and not self.recording:
            before = time.time_ns()
            dist.barrier()
            now = time.time_ns()
            dist.barrier()
            self.events.put({"name": "clock_sync", "ts": now, "bound": time.time_ns() - before})
            self.recording = True
        if self.recording:
            self.events.put({"name": f"batch_{step}", "ph": "B", "ts": time.time_ns(), "pid": dist.get_rank()})

    def batch_end(self, step: int) -> None:
        if self.recording:
            self.events.put({"name": f"batch_{step}", "ph": "E", "ts": time.time_ns(), "pid": dist.get_rank()})
        if self._phase(step) != "save":
            return
        rows = []
        while not self.events.empty():
            rows.append(self.events.get_nowait())
        self.folder.mkdir(parents=True, exist_ok=True)
        mine = self.folder / f"rank{dist.get_rank()}-{step}.json"
        mine.write_text(json.dumps(rows))
        names = [None] * dist.get_world_size()
        dist.all_gather_object(names, str(mine))
        self.recording = False
        if int(os.environ["LOCAL_RANK"]) != 0:
            return
        first, count = dist.get_rank(), int(os.environ["LOCAL_WORLD_SIZE"])
        merged = [e for n in names[first:first + count] for e in json.loads(Path(n).read_text())]
        (self.folder / f"node{os.environ['GROUP_RANK']}-{step}.json").write_text(json.dumps(merged))


def main():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
    tracer = TraceWriter("/tmp/traces", wait=5, active=3, repeat=2)
    for step in range(40):
        tracer.batch_start(step)
        model(torch.randn(4, 32)).sum().backward()
        tracer.batch_end(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
