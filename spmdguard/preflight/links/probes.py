"""The measurements, on torch: each is one rank's part, and returns plain data.

Values are known beforehand: element ``i`` of rank ``r`` is ``(r + 1) * (i % 97 + 1)``, exact in float32.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["probe_clock", "probe_collectives", "probe_pair", "probe_process", "use_device"]

_PERIOD = 97
_REPEATS = 5
_MATMUL_SIZE = 384
_MIB = 2**20


def pattern(rank: int, num_elements: int, device: Any) -> torch.Tensor:
    """What a rank contributes."""
    return torch.arange(num_elements, device=device).remainder(_PERIOD).add(1).mul(rank + 1).to(torch.float32)


def use_device(device: Any) -> None:
    """Make the device the current one, so that nothing lands on the first device of the host."""
    if device.type == "cuda":
        torch.cuda.set_device(device)


def probe_process(device: Any, memory_mib: int) -> dict[str, Any]:
    """One process alone: a product with a known result, its time, and memory that keeps what is written."""
    ones = torch.ones(_MATMUL_SIZE, _MATMUL_SIZE, device=device)
    product = ones @ ones  # the first one loads libraries
    times = [_time(device, lambda: ones @ ones) for _ in range(_REPEATS)]
    wrong = bool((product != _MATMUL_SIZE).any())
    num_bytes = _free_bytes(device, memory_mib * _MIB)
    try:
        block = torch.empty(num_bytes, dtype=torch.uint8, device=device)
        for value in (0x55, 0xAA):
            block.fill_(value)
            wrong |= int(block[:: max(1, num_bytes // 4096)].to(torch.int64).sum()) != value * len(
                range(0, num_bytes, max(1, num_bytes // 4096))
            )
        del block
    except RuntimeError as error:
        return {"compute_s": min(times), "wrong": wrong, "memory": f"{num_bytes // _MIB} MiB: {_line(error)}"}
    return {"compute_s": min(times), "wrong": wrong, "memory": ""}


def probe_collectives(
    group: Any, ranks: Sequence[int], device: Any, sizes: Sequence[int]
) -> list[dict[str, Any]]:
    """Collectives of ``group`` with sizes in elements: seconds, and ranks whose values were wrong."""
    found = []
    for num_elements in sizes:
        for name, run in _collectives(group, list(ranks), device, num_elements).items():
            wrong = run()
            seconds = min(_time(device, run) for _ in range(_REPEATS if num_elements < _MIB else 2))
            found.append({"operation": name, "bytes": 4 * num_elements, "seconds": seconds, "wrong": wrong})
    return found


def _collectives(
    group: Any, ranks: list[int], device: Any, num_elements: int
) -> dict[str, Callable[[], list[int]]]:
    """Each returns the ranks whose part came wrong; -1 where it cannot be told whose."""
    me = dist.get_rank()
    own = pattern(me, num_elements, device)
    total = pattern(0, num_elements, device).mul(sum(rank + 1 for rank in ranks))

    def all_reduce() -> list[int]:
        values = own.clone()
        dist.all_reduce(values, group=group)
        return [] if torch.equal(values, total) else [-1]

    def broadcast() -> list[int]:
        values = own.clone()
        dist.broadcast(values, src=ranks[0], group=group)
        return [] if torch.equal(values, pattern(ranks[0], num_elements, device)) else [ranks[0]]

    def all_gather() -> list[int]:
        parts = [torch.zeros_like(own) for _ in ranks]
        dist.all_gather(parts, own, group=group)
        pairs = zip(ranks, parts, strict=True)
        return [rank for rank, part in pairs if not torch.equal(part, pattern(rank, num_elements, device))]

    return {"all_reduce": all_reduce, "broadcast": broadcast, "all_gather": all_gather}


def probe_pair(first: int, second: int, device: Any, num_elements: int) -> dict[str, Any]:
    """Two ranks send each other a number and a block: seconds one way, bytes a second, who received wrongly."""
    me = dist.get_rank()
    other = second if me == first else first
    exchanges: list[tuple[float, bool]] = []
    for size in (1, 1, 1, 1, 1, num_elements, num_elements, num_elements):
        own, expected = pattern(me, size, device), pattern(other, size, device)
        received = torch.zeros_like(own)
        started_s = time.perf_counter()
        if me == first:
            dist.send(own, other)
            dist.recv(received, other)
        else:
            dist.recv(received, other)
            dist.send(own, other)
        _finish(device)
        exchanges.append((time.perf_counter() - started_s, torch.equal(received, expected)))
    small, large = exchanges[1:5], exchanges[5:]
    return {
        "pair": [first, second],
        "latency_s": min(seconds for seconds, _ in small) / 2,
        "num_bytes": 8 * num_elements,
        "bytes_s": 8 * num_elements / min(seconds for seconds, _ in large),
        "wrong_at": [] if all(right for _, right in exchanges) else [me],
    }


def probe_clock(rank: int, world_size: int, group: Any) -> float:
    """Seconds by which this rank's clock is ahead of rank 0's, by the best of a few round trips on CPU tensors."""
    offset = 0.0
    for other in range(1, world_size):
        if rank == 0:
            for _ in range(_REPEATS):
                tick = torch.zeros(1, dtype=torch.float64)
                dist.recv(tick, other, group=group)
                dist.send(torch.tensor([time.time()], dtype=torch.float64), other, group=group)
        elif rank == other:
            offset = _ask_clock(group)
    return offset


def _ask_clock(group: Any) -> float:
    best = (float("inf"), 0.0)
    for _ in range(_REPEATS):
        before = time.time()
        dist.send(torch.zeros(1, dtype=torch.float64), 0, group=group)
        answer = torch.zeros(1, dtype=torch.float64)
        dist.recv(answer, 0, group=group)
        after = time.time()
        best = min(best, (after - before, (before + after) / 2 - float(answer[0])))
    return best[1]


def _free_bytes(device: Any, wanted: int) -> int:
    """On an accelerator half of what is free, else what is wanted."""
    if device.type != "cuda":
        return wanted
    free, _ = torch.cuda.mem_get_info(device)
    return free // 2


def _time(device: Any, run: Callable[[], Any]) -> float:
    _finish(device)
    started_s = time.perf_counter()
    run()
    _finish(device)
    return time.perf_counter() - started_s


def _finish(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
