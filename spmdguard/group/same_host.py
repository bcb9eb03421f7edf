"""Ranks of one host agree through shared memory: each writes one word, and reads those of all a step later.

For one number gloo wakes two threads and moves bytes through a socket, which takes 180 us from a step where the
ranks leave no core free; here nobody is woken. *Turn*: the number of an agreement. *Word*: turn and value of one
rank in 8 bytes. *Row*: the words of all ranks, one row for even turns and one for odd ones.

Why no fence is needed, on x86-64 and on ARM64:

- An aligned word of 8 bytes is written and read whole, and it holds turn and value, so that no reader can see the
  one without the other. (Were it torn, turn or call number would be wrong: an error or a wait, never a wrong verdict.)
- A rank begins turn n when it has seen every word of turn n - 1, and so after every rank has read the row of n - 2,
  which turn n writes over. Each link of that chain is a load, a branch on what it gave, and a store; neither
  processor lets such a store be seen before that load is done.

The memory has no name: the first rank makes it (``memfd_create``), the others open it through ``/proc``, and it is
gone with the last of them, however that ends. Descriptors of processes (``pidfd_open``) tell who has ended.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spmdguard.format import name_ranks

_NAME = "spmdguard agreement"
_WORD_BYTES = 8
_TURN = 2**32
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROCESS_NUMBERS = Path("/proc/self/ns/pid")
_TOKEN_BYTES = 16
_NUM_SHORT_PAUSES = 20
_SHORT_PAUSE_S = 50e-6
_LONGEST_PAUSE_MS = 10


class Memory:
    """Memory that one process made and others can open; ``token`` tells it from any other."""

    def __init__(self, descriptor: int, num_ranks: int, token: bytes) -> None:
        self.descriptor = descriptor
        self.token = token
        mapped = memoryview(mmap.mmap(descriptor, _TOKEN_BYTES + 3 * num_ranks * _WORD_BYTES))
        if not mapped[:_TOKEN_BYTES].tobytes() == token:
            raise OSError("this is other memory")
        words = mapped[_TOKEN_BYTES:].cast("q")
        self.rows = words[:num_ranks], words[num_ranks : 2 * num_ranks]
        self.left = words[2 * num_ranks :]

    @classmethod
    def make(cls, num_ranks: int, token: bytes) -> Memory:
        """New memory, all words 0."""
        descriptor = os.memfd_create(_NAME)
        try:
            os.write(descriptor, token + bytes(3 * num_ranks * _WORD_BYTES))
            return cls(descriptor, num_ranks, token)
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def open(cls, pid: int, descriptor: int, num_ranks: int, token: bytes) -> Memory:
        """What process ``pid`` made; ``OSError`` or ``ValueError`` where that is not reachable from here."""
        path = Path(f"/proc/{pid}/fd/{descriptor}")
        if not str(path.readlink()).startswith(f"/memfd:{_NAME}"):  # opening a device would have effects
            raise OSError(f"{path} is something else")
        own = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return cls(own, num_ranks, token)
        finally:
            os.close(own)


class Ends:
    """Which of the other ranks' processes have ended; waiting for that is the pause between looks."""

    def __init__(self, pids: Sequence[int]) -> None:
        self.ended: set[int] = set()
        self._indices: dict[int, int] = {}
        self._poll = select.poll()
        try:
            for index, pid in enumerate(pids):
                if pid != os.getpid():
                    descriptor = os.pidfd_open(pid)
                    self._indices[descriptor] = index
                    self._poll.register(descriptor, select.POLLIN)
        except BaseException:
            self.close()
            raise

    def pause(self, milliseconds: int) -> None:
        """Return after that time, or as soon as another process ends."""
        for descriptor, _ in self._poll.poll(milliseconds):
            self._poll.unregister(descriptor)
            self.ended.add(self._indices[descriptor])

    def close(self) -> None:
        self._poll = select.poll()
        for descriptor in self._indices:
            os.close(descriptor)
        self._indices.clear()


class SameHost:
    """The agreements of the ranks of one group, all on this host."""

    def __init__(
        self, memory: Memory, ends: Ends, ranks: Sequence[int], own: int, find_timeout_s: Callable[[], float]
    ) -> None:
        self._rows = memory.rows
        self._left = memory.left
        self._ends = ends
        self._ranks = ranks
        self._own = own
        self._find_timeout_s = find_timeout_s
        self._pid = os.getpid()
        self._turn = 0

    def start(self, value: int) -> SameHost:
        """Say this rank's value, not negative, for the next turn; the last one must have been waited for."""
        turn = self._turn = self._turn + 1
        self._rows[turn & 1][self._own] = turn * _TURN + value
        return self

    def agree_on_host(self) -> int:
        """The largest value of any rank in the turn begun last."""
        turn = self._turn
        row = self._rows[turn & 1]
        words: list[int] = row.tolist()
        if min(words) < turn * _TURN:
            words = self._wait_for_all(row, turn * _TURN)
        return max(words) % _TURN

    wait = agree_on_host  # the watch knows the frame by its name

    def _wait_for_all(self, row: memoryview, least: int) -> list[int]:
        """The words of all ranks; sleeps between looks, because the core belongs to the training.

        Raises:
            RuntimeError: a rank that has not come has ended or left, or the time is over.
        """
        started_s, timeout_s = time.monotonic(), self._find_timeout_s()
        num_looks, suspected = 0, set[int]()
        while True:
            words = row.tolist()
            missing = [index for index, word in enumerate(words) if word < least]
            if not missing:
                return words
            gone = {index for index in missing if index in self._ends.ended or self._left[index]}
            waited_s = time.monotonic() - started_s
            if gone & suspected:  # its last word would have been seen by now
                raise RuntimeError(f"{self._name(gone)} ended or destroyed the group without having come")
            if waited_s > timeout_s:
                raise RuntimeError(f"waited {waited_s:.1f} s for {self._name(missing)}")
            suspected = gone
            num_looks += 1
            if num_looks <= _NUM_SHORT_PAUSES:
                time.sleep(_SHORT_PAUSE_S)
            else:
                self._ends.pause(min(_LONGEST_PAUSE_MS, 1 + int(20 * waited_s)))

    def _name(self, indices: set[int] | list[int]) -> str:
        return name_ranks(sorted(self._ranks[index] for index in indices))

    def leave(self) -> None:
        """This rank will not come again: its group is gone. A forked child's copy of the group says nothing."""
        if os.getpid() == self._pid:
            self._left[self._own] = 1
            self.close()

    def close(self) -> None:
        """Free what tells whether other processes live."""
        self._ends.close()


def meet_on_host(
    ranks: Sequence[int],
    rank: int,
    gather_texts: Callable[[str], list[str]],
    max_int32: Callable[[int], int],
    find_timeout_s: Callable[[], float],
) -> SameHost | None:
    """Find out together whether all ranks share this host, its process numbers and memory; None where not.

    Collective: an exchange of texts and an int32 all_reduce.
    """
    made = _try(lambda: Memory.make(len(ranks), os.urandom(_TOKEN_BYTES))) if rank == ranks[0] else None
    try:
        told = [json.loads(text) for text in gather_texts(json.dumps(_describe(made)))]
        found = _try(lambda: _join(told, ranks, rank, made, find_timeout_s))
        failed = max_int32(int(found is None))
    finally:
        if made is not None:
            os.close(made.descriptor)
    if failed and found is not None:
        found.close()
    return None if failed else found


def _describe(made: Memory | None) -> dict[str, Any]:
    """What another process needs to find this one and what it made; ``host`` also tells containers apart."""
    host = _try(lambda: f"{_BOOT.read_text().strip()} {_PROCESS_NUMBERS.stat().st_ino}")
    described = {"host": host, "pid": os.getpid()}
    return described if made is None else {**described, "fd": made.descriptor, "token": made.token.hex()}


def _join(
    told: list[dict[str, Any]],
    ranks: Sequence[int],
    rank: int,
    made: Memory | None,
    find_timeout_s: Callable[[], float],
) -> SameHost | None:
    main = told[0]
    if main["host"] is None or "token" not in main or any(each["host"] != main["host"] for each in told):
        return None
    token = bytes.fromhex(main["token"])
    memory = made or Memory.open(main["pid"], main["fd"], len(ranks), token)
    ends = Ends([each["pid"] for each in told])
    return SameHost(memory, ends, ranks, ranks.index(rank), find_timeout_s)


def _try(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (OSError, ValueError, AttributeError):  # another system, an old kernel, a closed /proc
        return None
