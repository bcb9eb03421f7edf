"""What simulating costs: 64 ranks x 1,000 collectives, and the same through this package's own agreement.

``python tests/benchmarks/simulated_world.py`` prints wall and CPU seconds; the bar is 2 s. On a machine that
other programs use too, compare CPU seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from measure import median, table

import spmdguard
from spmdguard.testing import SimulatedWorld


def all_reduce(num_calls: int) -> None:
    tensor = torch.ones(4)
    for _ in range(num_calls):
        dist.all_reduce(tensor)


def barrier(num_calls: int) -> None:
    for _ in range(num_calls):
        dist.barrier()


def agree(num_calls: int) -> None:
    for _ in range(num_calls):
        spmdguard.sync_should_stop()


def measure(
    work: Callable[[int], None], ranks: int, num_calls: int, *, with_torch: bool
) -> tuple[float, float]:
    world = SimulatedWorld(ranks, torch=with_torch)
    started_s, started_cpu_s = time.perf_counter(), time.process_time()
    world.run(work, num_calls)
    return time.perf_counter() - started_s, time.process_time() - started_cpu_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    cases = [
        ("torch.distributed.all_reduce", all_reduce, True),
        ("torch.distributed.barrier", barrier, True),
        ("sync_should_stop", agree, True),
        ("sync_should_stop, without torch", agree, False),
    ]
    rows = []
    for name, work, with_torch in cases:
        runs = [measure(work, args.ranks, args.calls, with_torch=with_torch) for _ in range(args.repeat)]
        rows.append((name, median(wall for wall, _ in runs), median(cpu for _, cpu in runs)))
    print(f"{args.ranks} ranks x {args.calls} calls, median of {args.repeat}")
    print(table(["operation", "wall (s)", "CPU (s)"], rows))


if __name__ == "__main__":
    main()
