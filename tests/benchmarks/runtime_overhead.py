"""What the decorators cost without an error, and what operators cost inside a region.

    python tests/benchmarks/runtime_overhead.py

Prints microseconds over the plain call (best of many, plain and decorated calls in turn), and the ratio of
operators inside and outside a region. Bars: rank_local <= 2.5 us with the region guard (aim 1.5), collective
<= 1.5 us, operators <= 1.05.
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable

import torch
import torch.distributed as dist

import spmdguard
from spmdguard.group import guard

NUM_CALLS = 20_000
NUM_ROUNDS = 41


def plain(value: int) -> int:
    return value


def paired(calls: dict[str, Callable[[], object]], num_calls: int = NUM_CALLS) -> dict[str, float]:
    """Best seconds a call of each, measured in turn so that a busy machine disturbs all alike."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(NUM_ROUNDS):
        for name, call in calls.items():
            best[name] = min(best[name], timeit.timeit(call, number=num_calls) / num_calls)
    return best


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    local, together = spmdguard.rank_local(plain), spmdguard.collective(plain)
    main_only = spmdguard.rank_local(only="main")(plain)
    best = paired(
        {
            "plain": lambda: plain(1),
            "rank_local": lambda: local(1),
            "rank_local(only='main')": lambda: main_only(1),
            "collective": lambda: together(1),
        }
    )
    print(f"region guard: {guard.installed}")
    for name in list(best)[1:]:
        print(f"{name:<26} {1e6 * (best[name] - best['plain']):5.2f} us over the plain call")
    matrix, vector = torch.randn(64, 64), torch.randn(64)
    work = {
        "add": lambda: vector + vector,
        "matmul": lambda: matrix @ matrix,
        "layer": lambda: torch.nn.functional.relu(matrix @ vector),
    }
    for name, call in work.items():
        ratio = operators_inside(call)
        print(f"{name:<26} {ratio:5.3f} x inside a region")
    dist.destroy_process_group()


def operators_inside(call: Callable[[], object]) -> float:
    """Cost inside a region by cost outside: medians of many short samples in turn."""
    inside, outside = [], []
    for _ in range(2000):
        outside.append(timeit.timeit(call, number=20))
        with spmdguard.deferring("benchmark"):
            inside.append(timeit.timeit(call, number=20))
    return statistics.median(inside) / statistics.median(outside)


if __name__ == "__main__":
    main()
