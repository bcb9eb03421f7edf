"""What an agreed stop costs: beside a bare int32 all_reduce on the same group, Accelerate's trigger, Lightning's.

    torchrun --nproc-per-node 2 tests/benchmarks/runtime_stop.py

Each is measured against the bare all_reduce call by call, in pairs, because the frameworks call all_reduce
themselves and would keep its code in the caches for it alone; printed are medians and their ratio. Accelerate and
Lightning are compared where they are installed. With ``--step-ms 5`` what it adds to
a step of that length is measured too, plain and with ``overlap=True``.
Bars: sync_should_stop <= 1.1 x bare; overlap <= 2 % of a 5 ms step.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

import spmdguard


def measure(calls: dict[str, Callable[[], object]], num_rounds: int) -> dict[str, list[float]]:
    """Seconds of every single call, the contenders in turn, so that a busy machine disturbs all alike.

    Which one comes first rotates, and every other round is reversed: a call takes longer after one that has
    used the caches for something else.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls.items())
    for number in range(num_rounds):
        order = order[1:] + order[:1]
        for name, call in reversed(order) if number % 2 else order:
            dist.barrier()
            started_s = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - started_s)
    return times


def compute(milliseconds: float) -> None:
    """A training step's own work: tensor operations of about that length."""
    matrix = torch.ones(64, 64)
    until_s = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < until_s:
        matrix @ matrix


def contenders() -> dict[str, Callable[[], object]]:
    flag = torch.zeros(1, dtype=torch.int32)
    found: dict[str, Callable[[], object]] = {
        "bare all_reduce": lambda: dist.all_reduce(flag, op=dist.ReduceOp.MAX),
        "sync_should_stop": spmdguard.sync_should_stop,
    }
    if importlib.util.find_spec("accelerate") is not None:
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True)
        found["accelerate check_trigger"] = accelerator.check_trigger
    if importlib.util.find_spec("lightning") is not None:
        from lightning.fabric.plugins.environments import TorchElasticEnvironment
        from lightning.pytorch.strategies import DDPStrategy

        strategy = DDPStrategy(
            parallel_devices=[torch.device("cpu")] * dist.get_world_size(),
            cluster_environment=TorchElasticEnvironment(),
        )
        found["lightning reduce_boolean"] = lambda: strategy.reduce_boolean_decision(False, all=False)
    return found


def show(times: dict[str, list[float]], base: str) -> None:
    """Median of each, and its ratio to the median of ``base``, on the main rank."""
    if dist.get_rank() == 0:
        bare = statistics.median(times[base])
        for name, each in times.items():
            median = statistics.median(each)
            print(f"{name:<26} {1e6 * median:8.1f} us  {median / bare:6.3f} x {base}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--step-ms", type=float, default=0.0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    calls = contenders()
    base = "bare all_reduce"
    for name in sorted(calls.keys() - {base}):
        measure({base: calls[base], name: calls[name]}, 100)
    for name in calls:
        if name != base:
            show(measure({base: calls[base], name: calls[name]}, given.rounds), base)
    if given.step_ms:
        compare_steps(given.step_ms, given.rounds // 10)
    spmdguard.run(lambda: None, exit_process=True)


def compare_steps(step_ms: float, num_rounds: int) -> None:
    """What the agreement adds to a step; the call alone is timed, after the step's work.

    ``bare, late`` is what no overlapped agreement can do without: wait for an all_reduce that was begun a step
    ago, and begin the next.
    """
    flag, works = torch.zeros(1, dtype=torch.int32), [None]

    def bare_late() -> None:
        if works[0] is not None:
            works[0].wait()
        works[0] = dist.all_reduce(flag, op=dist.ReduceOp.MAX, async_op=True)

    calls: dict[str, Callable[[], object]] = {
        "plain": spmdguard.sync_should_stop,
        "bare, late": bare_late,
        "overlap=True": lambda: spmdguard.sync_should_stop(overlap=True),
    }
    for name, call in calls.items():
        times = []
        for _ in range(num_rounds):
            dist.barrier()
            compute(step_ms)
            started_s = time.perf_counter()
            call()
            times.append(time.perf_counter() - started_s)
        if dist.get_rank() == 0:
            median_s = statistics.median(times)
            print(
                f"{name:<26} {1e6 * median_s:8.1f} us  {1000 * median_s / step_ms:6.1%} of a {step_ms:g} ms step"
            )
        if name == "bare, late":
            works[0].wait()


if __name__ == "__main__":
    main()
