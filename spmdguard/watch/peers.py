"""The other ranks of this node, as the watch sees them: alive, gone, stopped, and what they last said."""

from __future__ import annotations

import contextlib
import os
import select
from dataclasses import replace

from spmdguard.watch.board import Board, process_state
from spmdguard.watch.fatal import find_end, read_fatal
from spmdguard.watch.native import read_stacks
from spmdguard.watch.standing import Standing, from_json

FRESH_S = 2.0


class Peers:
    """Waits for the end of the other ranks' processes, and reads what they said; ``wakes`` ends a wait too."""

    def __init__(self, board: Board, wakes: int | None = None) -> None:
        self._board = board
        self._descriptors: dict[int, int] = {}
        self._pids: dict[int, int] = {}
        self._ends: dict[int, str] = {}
        self.gone: set[int] = set()
        self._poll = select.poll()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._poll.register(self._reading, select.POLLIN)
        if wakes is not None:
            self._poll.register(wakes, select.POLLIN)

    def wake(self) -> None:
        """End a ``wait`` of another thread."""
        with contextlib.suppress(OSError):
            os.write(self._writing, b"x")

    def find_new(self) -> None:
        """Learn of ranks that have come since."""
        for rank in self._board.ranks():
            if rank == self._board.rank or rank in self._descriptors or rank in self.gone:
                continue
            known = self._board.age_of(rank)
            if known is None or known[1] <= 0:
                continue
            try:
                descriptor = os.pidfd_open(known[1])
            except (ProcessLookupError, AttributeError):
                if not process_state(known[1]):
                    self.gone.add(rank)
                continue
            except OSError:
                continue
            self._descriptors[rank], self._pids[rank] = descriptor, known[1]
            self._poll.register(descriptor, select.POLLIN)

    def wait(self, timeout_s: float) -> bool:
        """Sleep, until a rank's process ends or ``wake`` is called; whether one has ended."""
        ready = dict(self._poll.poll(max(1.0, timeout_s * 1000)))
        if self._reading in ready:
            os.read(self._reading, 4096)
        ended = [rank for rank, descriptor in self._descriptors.items() if descriptor in ready]
        for rank in ended:
            descriptor = self._descriptors.pop(rank)
            self._poll.unregister(descriptor)
            os.close(descriptor)
            self._ends[rank] = find_end(self._pids[rank])
            self.gone.add(rank)
        return bool(ended)

    def is_alive(self, rank: int) -> bool:
        """Whether the rank's process is there and its watch thread runs."""
        known = self._board.age_of(rank)
        return known is not None and rank not in self.gone and known[0] < FRESH_S

    def is_there(self, rank: int) -> bool:
        """Whether the rank's process is there, whatever it does."""
        known = self._board.age_of(rank)
        return known is not None and rank not in self.gone and process_state(known[1]) not in ("", "Z", "X")

    def leader(self) -> int:
        """The lowest rank of this node whose watch runs; it reports for the node."""
        own = self._board.rank
        return next((rank for rank in self._board.ranks() if rank == own or self.is_alive(rank)), own)

    def read(self, rank: int) -> Standing | None:
        """What a rank last said, with what its process shows; None where it said nothing that can be read."""
        found = self._board.read(rank)
        if found is None:
            return None
        age_s, said_s, pid, payload = found
        try:
            standing = from_json(payload)
        except ValueError:
            return None
        standing = replace(standing, rank=rank, seen_s=age_s, since_s=standing.since_s + said_s)
        if standing.state in ("raised", "ended"):
            return standing
        state = process_state(pid)
        if rank in self.gone or state in ("", "Z", "X"):
            return self._of_dead(standing)
        if state in ("T", "t"):
            return replace(standing, state="stopped")
        if age_s <= FRESH_S:
            return standing
        places = read_stacks(self._board.folder, rank) or standing.places
        return replace(standing, state="silent", places=places)

    def _of_dead(self, standing: Standing) -> Standing:
        """With how the process ended, and where a fatal signal met it."""
        rank = standing.rank
        fatal = read_fatal(self._board.folder, rank)
        if fatal is None:
            return replace(standing, state="died", failure=self._ends.get(rank, ""))
        return replace(
            standing,
            state="died",
            failure=fatal.signal,
            places=fatal.places or standing.places,
            operation=fatal.operation,
        )

    def read_all(self) -> list[Standing]:
        """What every rank of this node last said."""
        found = (self.read(rank) for rank in self._board.ranks())
        return [each for each in found if each is not None]

    def close(self) -> None:
        """Close what it waits on."""
        for descriptor in (*self._descriptors.values(), self._reading, self._writing):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._descriptors.clear()
