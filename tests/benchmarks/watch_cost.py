"""What the watch costs a step of 5 ms: CPU time of the whole process, with the watch looking and not looking.

``torchrun --nproc-per-node 2 tests/benchmarks/watch_cost.py``. Every step computes for about 5 ms and reduces a
small tensor. Blocks of steps with the watch alternate with blocks in which its thread sleeps; each pair gives a
ratio of CPU times, and the median of the pairs is printed. CPU time of the watch's thread is printed too, and what
torch's recorder adds to a collective: a separate loop, because it cannot be switched off in a running process.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from spmdguard.group.progress import RECORDER_SIZE
from spmdguard.watch.settings import Settings
from spmdguard.watch.watching import Watch

STEP_S = 0.005
STEPS = 100
PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 25


class PausableWatch(Watch):
    """A watch that can be told to do nothing."""

    paused = False
    cpu_s = 0.0

    def _tick(self) -> None:
        if not self.paused:
            super()._tick()
            self.cpu_s = time.thread_time()


def work(num: int) -> float:
    total = 0.0
    for index in range(num):
        total += index * 0.5
    return total


def calibrate() -> int:
    """How many rounds of ``work`` take ``STEP_S`` of CPU time."""
    num = 10_000
    while True:
        started_s = time.thread_time()
        work(num)
        taken_s = time.thread_time() - started_s
        if taken_s > STEP_S / 2:
            return int(num * STEP_S / taken_s)
        num *= 2


def block(num: int, tensor: torch.Tensor) -> float:
    """CPU seconds of this process for ``STEPS`` steps."""
    started_s = time.process_time()
    for _ in range(STEPS):
        work(num)
        dist.all_reduce(tensor)
    return time.process_time() - started_s


def main() -> None:
    os.environ.setdefault("TORCH_FR_BUFFER_SIZE", str(RECORDER_SIZE))
    torch.set_num_threads(1)
    watch = PausableWatch(Settings(stall_limit_s=600.0), lambda: None)
    watch.start()
    dist.init_process_group("gloo")
    watch.ready.wait(20)
    tensor = torch.ones(16)
    num = calibrate()
    block(num, tensor)
    ratios = []
    watched_s, cpu_before_s = 0.0, watch.cpu_s
    for pair in range(PAIRS):
        found = {}
        for paused in (False, True) if pair % 2 else (True, False):
            watch.paused = paused
            started_s = time.monotonic()
            found[paused] = block(num, tensor)
            watched_s += 0.0 if paused else time.monotonic() - started_s
        ratios.append(found[False] / found[True])
    share = (watch.cpu_s - cpu_before_s) / watched_s
    if dist.get_rank() == 0:
        print(f"steps of {1000 * STEP_S:g} ms, {dist.get_world_size()} ranks, {PAIRS} pairs of {STEPS} steps")
        print(f"CPU time with the watch / without: median {statistics.median(ratios):.4f}", end="")
        print(f" (quartiles {statistics.quantiles(ratios)[0]:.4f}, {statistics.quantiles(ratios)[2]:.4f})")
        print(f"the watch's thread: {100 * share:.3f} % of a core")
    dist.barrier()
    watch.finish(None)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
