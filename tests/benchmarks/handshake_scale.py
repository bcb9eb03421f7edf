"""How long the handshake of thousands of ranks takes beyond connecting: simulated ranks against one real store.

    python -m tests.benchmarks.handshake_scale --ranks 256 1024 4096 --model 10000

One process holds a real TCPStore, as torchrun's agent does. One process judges. The other ranks are logical: they
make the requests of the handshake, each with a record of its own, over the connections of a few threads in
``--processes`` processes. Timed from the moment when all connections stand until the last rank has its verdict.
"""

from __future__ import annotations

import argparse
import multiprocessing
import threading
import time
from dataclasses import replace
from typing import Any

from spmdguard.group.store import JobStore, StoreAddress, connect
from spmdguard.launch.identity import Identity, find_identity
from spmdguard.launch.verdicts import Judge, Verdict, hear_verdict, publish

from ..runtime.processes.ports import free_port

_TIMEOUT_S = 300.0
_RANKS_PER_HOST = 8


def identity_of(rank: int, size: int) -> Identity:
    """A record as large as a real one."""
    return replace(
        find_identity({"RANK": str(rank), "WORLD_SIZE": str(size), "NCCL_DEBUG": "WARN"}),
        host=f"gpu-node-{rank // _RANKS_PER_HOST:04}.cluster.example",
        pid=10_000 + rank,
        rank=rank,
        local_rank=rank % _RANKS_PER_HOST,
        world_size=size,
        local_world_size=_RANKS_PER_HOST,
        address="10.0.0.1:29500",
    )


def serve(port: int, ready: Any, done: Any) -> None:
    """Hold the store until all is done."""
    connect(StoreAddress("127.0.0.1", port, held_here=True), _TIMEOUT_S)
    ready.wait(_TIMEOUT_S)
    done.wait(_TIMEOUT_S)


def judge(port: int, size: int, ready: Any, heard: Any) -> None:
    """Rank 0, which comes first."""
    store = connect(StoreAddress("127.0.0.1", port), _TIMEOUT_S).under("launch", 0, 1)
    me = identity_of(0, size)
    assert publish(store, me) == 1
    ready.wait(_TIMEOUT_S)
    verdict = Judge(store, (), _TIMEOUT_S, time.monotonic() + _TIMEOUT_S).judge()
    heard.put(check(verdict, size))


def join(port: int, ranks: range, size: int, num_threads: int, ready: Any, heard: Any) -> None:
    """Many ranks, over one connection for each thread."""
    address = StoreAddress("127.0.0.1", port)
    stores = [connect(address, _TIMEOUT_S).under("launch", 0, 1) for _ in range(num_threads)]
    records = [[identity_of(rank, size) for rank in ranks[i::num_threads]] for i in range(num_threads)]
    ready.wait(_TIMEOUT_S)
    instants: list[float] = []
    threads = [
        threading.Thread(target=take_part, args=(store, mine, size, instants))
        for store, mine in zip(stores, records, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_TIMEOUT_S)
    assert len(instants) == num_threads, "a thread failed"
    heard.put(max(instants))


def take_part(store: JobStore, records: list[Identity], size: int, instants: list[float]) -> None:
    for me in records:
        publish(store, me)
    judge_of_last_resort = Judge(store, (), _TIMEOUT_S, time.monotonic() + _TIMEOUT_S)
    for me in records:
        check(hear_verdict(store, judge_of_last_resort, me), size)
        store.add("heard")
    instants.append(time.monotonic())


def check(verdict: Verdict, size: int) -> float:
    assert (verdict.faults, verdict.num_arrived) == ((), size), verdict
    return time.monotonic()


def measure(size: int, num_processes: int, num_threads: int) -> float:
    """Seconds from the last connection to the last verdict heard."""
    context = multiprocessing.get_context("spawn")
    port = free_port()
    ready, done, heard = context.Barrier(num_processes + 3), context.Event(), context.Queue()
    shares = [range(1 + i, size, num_processes) for i in range(num_processes)]
    started = [
        context.Process(target=serve, args=(port, ready, done)),
        context.Process(target=judge, args=(port, size, ready, heard)),
    ]
    for process in started:
        process.start()
    # the judge has to come first: it alone may get ordinal 1
    reader = connect(StoreAddress("127.0.0.1", port), _TIMEOUT_S).under("launch", 0, 1)
    assert reader.poll(["id/1"], _TIMEOUT_S)
    for share in shares:
        process = context.Process(target=join, args=(port, share, size, num_threads, ready, heard))
        process.start()
        started.append(process)
    ready.wait(_TIMEOUT_S)
    began_s = time.monotonic()
    ended_s = max(heard.get(timeout=_TIMEOUT_S) for _ in range(num_processes + 1))
    done.set()
    for process in started:
        process.join(30)
    return ended_s - began_s


def fit(points: dict[int, float]) -> tuple[float, float]:
    """Least squares of ``seconds = fixed + per_rank * ranks``."""
    n = len(points)
    mean_x, mean_y = sum(points) / n, sum(points.values()) / n
    spread = sum((x - mean_x) ** 2 for x in points)
    per_rank = sum((x - mean_x) * (y - mean_y) for x, y in points.items()) / spread
    return mean_y - per_rank * mean_x, per_rank


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=16, help="connections of each process")
    parser.add_argument("--model", type=int, default=10_000, help="the size to predict")
    options = parser.parse_args()
    points = {size: measure(size, options.processes, options.threads) for size in options.ranks}
    fixed_s, per_rank_s = (
        fit(points) if len(points) > 1 else (0.0, next(iter(points.values())) / options.ranks[0])
    )
    record = len(identity_of(1, options.model).to_json())
    print(f"model: {fixed_s:.2f} s + {per_rank_s * 1e6:.0f} us a rank; a record has {record} bytes")
    for size, seconds in points.items():
        print(
            f"{size:>7} ranks: {seconds:6.2f} s measured, {fixed_s + per_rank_s * size:6.2f} s by the model"
        )
    print(f"{options.model:>7} ranks: {fixed_s + per_rank_s * options.model:15.2f} s by the model")


if __name__ == "__main__":
    main()
