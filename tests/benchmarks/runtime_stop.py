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

STEPS = 20


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
        compare_steps(given.step_ms, max(1, given.rounds // 50))
    spmdguard.run(lambda: None, exit_process=True)


def calibrate(milliseconds: float) -> int:
    """How many products of two small matrices take about that long; the same number on every rank."""
    matrix, number = torch.ones(64, 64), 500
    times = []
    for _ in range(20):
        started_s = time.perf_counter()
        multiply(matrix, number)
        times.append(time.perf_counter() - started_s)
    found = torch.tensor([int(number * milliseconds / 1000 / statistics.median(times))])
    dist.broadcast(found, 0)
    return max(1, int(found))


def multiply(matrix: torch.Tensor, number: int) -> None:
    for _ in range(number):
        matrix @ matrix


def compare_steps(step_ms: float, num_blocks: int) -> None:
    """What an agreement adds to a step of fixed work and one all_reduce: blocks of steps, in turn with blocks without.

    The call's own time says less: threads that gloo wakes run in the next step's time. ``bare, late`` is what no
    agreement through gloo can do without: wait for an all_reduce begun a step ago, and begin the next.
    """
    flag, works = torch.zeros(1, dtype=torch.int32), [None]
    matrix, gradient, number = torch.ones(64, 64), torch.zeros(64, 64), calibrate(step_ms)

    def bare_late() -> None:
        if works[0] is not None:
            works[0].wait()
        works[0] = dist.all_reduce(flag, op=dist.ReduceOp.MAX, async_op=True)

    calls: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "plain": spmdguard.sync_should_stop,
        "bare, late": bare_late,
        "overlap=True": lambda: spmdguard.sync_should_stop(overlap=True),
    }
    calls["overlap=True"]()
    blocks: dict[str, list[float]] = {name: [] for name in calls}
    used: dict[str, list[float]] = {name: [] for name in calls}
    own: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls.items())
    for turn in range(num_blocks):
        order = order[1:] + order[:1]
        for name, call in reversed(order) if turn % 2 else order:
            if name == "plain":
                spmdguard.sync_should_stop()  # ends the late one that is under way
            dist.barrier()
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            for _ in range(STEPS):
                multiply(matrix, number)
                dist.all_reduce(gradient)
                started_s = time.perf_counter()
                call()
                own[name].append(time.perf_counter() - started_s)
            blocks[name].append((time.perf_counter() - began_s) / STEPS)
            used[name].append((time.process_time() - began_cpu_s) / STEPS)
            if works[0] is not None:
                works[0].wait()
                works[0] = None
    if dist.get_rank() == 0:
        print(f"in a step of {1000 * statistics.median(blocks['nothing']):.2f} ms, {num_blocks} blocks each")
        for name in calls:
            shown = f"{name:<16} {1e6 * statistics.median(own[name]):8.1f} us in the call"
            print(f"{shown}; the step {describe(blocks, name)}; its CPU time {describe(used, name)}")


def describe(times: dict[str, list[float]], name: str) -> str:
    """The median of the ratios to the blocks of the same round without an agreement, and their quartiles."""
    ratios = sorted(a / b for a, b in zip(times[name], times["nothing"], strict=True))
    quarter = len(ratios) // 4
    return f"{statistics.median(ratios):.4f} x ({ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f})"


if __name__ == "__main__":
    main()
