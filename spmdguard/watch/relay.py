"""Between nodes: the leader of each node publishes what its ranks say; one writer per node, one counter to watch.

Keys in the job's store: ``nodes`` counts nodes, ``node/<i>`` holds what node i last said, ``detail/<i>`` what it
says when asked, ``call`` asks, ``cause`` is the first cause, ``alarm`` changes whenever ``call`` or ``cause``
does, and ``heard`` counts the nodes that have learned of the cause from the store. In quiet times a node costs one
write a ``PUBLISH_S`` and one small read a ``LISTEN_S``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from spmdguard.group.link import Link
from spmdguard.watch.board import Board
from spmdguard.watch.standing import Standing, from_data, to_data

PUBLISH_S = 2.0
LISTEN_S = 0.5
HOST_GONE_S = 6.0
MAX_NODES = 100_000


class Relay:
    """One rank's way to the other nodes; only the leader of a node uses it, but for a first cause."""

    def __init__(self, link: Link, board: Board, now: Callable[[], float] = time.monotonic) -> None:
        self._link, self._board, self._now = link, board, now
        self._number: int | None = None
        self._published_s = self._listened_s = -1e9
        self._alarm = 0

    def is_ready(self) -> bool:
        """Whether the store can be asked at once; else its connection is being opened."""
        return self._link.open()

    @property
    def _index(self) -> int:
        if self._number is None:
            self._number = self._find_index()
        return self._number

    def _find_index(self) -> int:
        """This node's number: the first rank of the node asks for one, the others read it."""
        for _ in range(200):
            note = self._board.find("node")
            if note is not None:
                return int(note.get("index", 0))
            if self._board.post("numbering", {}):
                index = self._link.add("nodes", 1) - 1
                self._board.post("node", {"index": index})
                return index
            time.sleep(0.01)
        return self._link.add("nodes", 1) - 1

    def is_due(self) -> bool:
        """Whether it is time to publish again."""
        return self._now() - self._published_s >= PUBLISH_S

    def publish(self, standings: Iterable[Standing], *, detail: bool = False) -> None:
        """Say what the ranks of this node say; without ``detail`` without calls and members of groups."""
        self._published_s = self._now()
        found = [each if detail else _brief(each) for each in standings]
        key = f"{'detail' if detail else 'node'}/{self._index}"
        self._link.set(key, json.dumps({"at": time.time(), "ranks": [to_data(each) for each in found]}))

    def listen(self) -> dict[str, Mapping[str, Any]]:
        """What another node has raised since: under ``"call"`` and ``"cause"``."""
        now_s = self._now()
        if now_s - self._listened_s < LISTEN_S:
            return {}
        self._listened_s = now_s
        alarm = self._link.add("alarm", 0)
        if alarm == self._alarm:
            return {}
        self._alarm = alarm
        found = {name: _read_object(self._link.find(name)) for name in ("call", "cause")}
        return {name: note for name, note in found.items() if note is not None}

    def raise_alarm(self, name: str, note: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set ``call`` or ``cause`` for all nodes; what it is then, because the first one stays."""
        stays = _read_object(self._link.first(name, json.dumps(note)))
        self._link.add("alarm", 1)
        return note if stays is None else stays

    def confirm(self) -> None:
        """Say that this node has heard of a cause that another one raised."""
        self._link.add("heard", 1)

    def wait_until_heard(self, timeout_s: float) -> bool:
        """Wait until every other node has heard of the cause; whether they all have."""
        others = self._link.add("nodes", 0) - 1
        deadline_s = self._now() + timeout_s
        while (heard := self._link.add("heard", 0)) < others and self._now() < deadline_s:
            time.sleep(0.05)
        return heard >= others

    def is_called(self) -> bool:
        """Whether a call is out."""
        return self._link.find("call") is not None

    def withdraw(self) -> None:
        """Take a call back, with what the nodes answered."""
        self._link.delete("call")
        for index in range(min(self._link.add("nodes", 0), MAX_NODES)):
            self._link.delete(f"detail/{index}")

    def gather(self, timeout_s: float) -> list[Standing]:
        """What the other nodes say in detail; what they last said where they do not answer in time."""
        others = set(range(min(self._link.add("nodes", 0), MAX_NODES))) - {self._index}
        found: list[Standing] = []
        deadline_s = self._now() + timeout_s
        while others:
            for index in sorted(others):
                text = self._link.find(f"detail/{index}")
                if text is not None:
                    found += read_node(text, time.time())
                    others.discard(index)
            if self._now() > deadline_s:
                break
            if others:
                time.sleep(0.05)
        for index in sorted(others):
            found += read_node(self._link.find(f"node/{index}"), time.time())
        return found


def _brief(standing: Standing) -> Standing:
    return replace(standing, calls=(), groups=tuple(replace(group, members="") for group in standing.groups))


def read_node(text: str | None, now_s: float) -> list[Standing]:
    """The standings in what a node said; of a host that said nothing for long, as of ranks that died."""
    node = _read_object(text)
    if node is None:
        return []
    at, ranks = node.get("at"), node.get("ranks")
    if not isinstance(at, int | float) or isinstance(at, bool) or not isinstance(ranks, list):
        return []
    age_s = max(0.0, now_s - at)
    found = []
    for data in ranks[:4096]:
        try:
            standing = from_data(data)
        except ValueError:
            continue
        gone = age_s > HOST_GONE_S and standing.state not in ("raised", "ended")
        found.append(
            replace(
                standing,
                seen_s=standing.seen_s + age_s,
                since_s=standing.since_s + age_s,
                state="died" if gone else standing.state,
            )
        )
    return found


def _read_object(text: str | None) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
