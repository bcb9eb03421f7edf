"""What the watch asks of the job's store: bytes and requests a second, with simulated nodes against one real store.

``python -m tests.benchmarks.watch_traffic`` makes nodes of 8 ranks, each with a connection of its own to a TCPStore
in another process, as their leaders have. Every node publishes and listens as often as in a quiet run of 20 s, as
fast as the store answers. Printed: requests and bytes a second that such a run asks for, and how much of the store's
time they take. A report of all ranks is gathered once, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from spmdguard.format import pack_ranks
from spmdguard.group.link import Link
from spmdguard.watch.board import Board
from spmdguard.watch.relay import LISTEN_S, PUBLISH_S, Relay
from spmdguard.watch.standing import GroupNumber, Place, Standing

RANKS_PER_NODE = 8
QUIET_S = 20.0


def hold_store(port: Any) -> None:
    """The process that holds the store, as torchrun's agent does."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    port.send(store.port)
    port.recv()


def standing(rank: int, num_ranks: int, step: int) -> Standing:
    """A rank in training, with three groups and paths of usual length."""
    file = "/home/user/projects/model/training/loop.py"
    places = tuple(
        Place(file, line, name) for line, name in ((212, "train_step"), (120, "train"), (30, "main"))
    )
    groups = (
        GroupNumber("0", "default_pg", pack_ranks(range(num_ranks)), step),
        GroupNumber("1", "mesh_dp", pack_ranks(range(rank % 8, num_ranks, 8)), step),
        GroupNumber("2", "mesh_tp", pack_ranks(range(rank - rank % 8, rank - rank % 8 + 8)), step),
    )
    return Standing(
        rank=rank, host=f"node{rank // 8}", pid=4000 + rank, places=places, groups=groups, step=step
    )


class Timer:
    """A clock that benchmarks set."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def measure(num_ranks: int, port: int) -> None:
    """One line of the table."""
    nodes = []
    timer = Timer()
    with tempfile.TemporaryDirectory() as folder:
        for index in range(num_ranks // RANKS_PER_NODE):
            store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
            store.set_timeout(timedelta(seconds=30))
            link = Link(dist.PrefixStore(str(num_ranks), store), "watch")
            board = Board(Path(folder) / str(index), index * RANKS_PER_NODE)
            ranks = range(index * RANKS_PER_NODE, (index + 1) * RANKS_PER_NODE)
            nodes.append(
                (Relay(link, board, timer), link, [standing(rank, num_ranks, 1000) for rank in ranks])
            )
        before = sum(link.num_requests for _, link, _ in nodes), sum(link.num_bytes for _, link, _ in nodes)
        started_s = time.monotonic()
        while timer.now_s < QUIET_S:
            for relay, _, ranks in nodes:
                if relay.is_due():
                    relay.publish(ranks)
                relay.listen()
            timer.now_s += LISTEN_S
        taken_s = time.monotonic() - started_s
        requests = (sum(link.num_requests for _, link, _ in nodes) - before[0]) / QUIET_S
        size = (sum(link.num_bytes for _, link, _ in nodes) - before[1]) / QUIET_S
        for relay, _, ranks in nodes[1:]:
            relay.publish(ranks, detail=True)
        started_s = time.monotonic()
        found = nodes[0][0].gather(10.0)
        gathered_s = time.monotonic() - started_s
        assert len(found) == num_ranks - RANKS_PER_NODE
    print(
        f"| {num_ranks} | {len(nodes)} | {requests:.0f} | {size / 1000:.0f} "
        f"| {100 * taken_s / QUIET_S:.1f} % | {gathered_s:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[256, 1024, 4096])
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    holder = multiprocessing.get_context("spawn").Process(target=hold_store, args=(theirs,), daemon=True)
    holder.start()
    port = ours.recv()
    print(f"publishing every {PUBLISH_S:g} s, listening every {LISTEN_S:g} s, {RANKS_PER_NODE} ranks a node")
    print(
        "| ranks | nodes | requests/s | kB/s | of one core and the store, one after the other | report gathered in s |"
    )
    print("|---|---|---|---|---|---|")
    try:
        for num in options.ranks:
            measure(num, port)
    finally:
        ours.send("end")
        holder.join(10)


if __name__ == "__main__":
    main()
