"""A key-value store for simulated ranks: waiting for a key lets other ranks run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from torch import distributed

from spmdguard.testing.meetings import Meetings
from spmdguard.testing.ranks import thread

_distributed: Any = distributed


class SimulatedStore(_distributed.Store):  # type: ignore[misc]  # torch's stub differs between versions
    """In memory, shared by all ranks of a run; nothing times out."""

    def __init__(self, meetings: Meetings) -> None:
        super().__init__()
        self._meetings = meetings
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: Any) -> None:
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._values[key]

    def add(self, key: str, value: int) -> int:
        total = int(self._values.get(key, b"0")) + value
        self._values[key] = str(total).encode()
        return total

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        wanted = expected.encode() if isinstance(expected, str) else bytes(expected)
        present = self._values.get(key)
        if present == wanted or (present is None and not wanted):
            self.set(key, desired)
        return self._values.get(key, wanted)

    def check(self, keys: list[str]) -> bool:
        return all(key in self._values for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        while not self.check(keys):
            rank = thread.rank
            if rank is None:
                raise RuntimeError(f"no simulated rank has set {keys!r}")
            self._meetings.poll(rank)

    def delete_key(self, key: str) -> bool:
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self._values)

    def set_timeout(self, timeout: timedelta) -> None:
        """Nothing times out."""
