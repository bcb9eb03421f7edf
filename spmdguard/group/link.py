"""A connection of our own to the job's store, for a thread beside the training.

The default store's connection is locked while the main thread waits for a key, so the watch has its own.
Values are text; what is read is capped.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from spmdguard.group.torch_access import default_group, loaded_c10d

MAX_VALUE_BYTES = 4_000_000
_TIMEOUT = timedelta(seconds=5)


class LinkLost(Exception):
    """The store cannot be reached any more."""


class Link:
    """Keys below ``spmdguard/<what>/<restart>/`` in the job's store; every method may raise ``LinkLost``."""

    def __init__(self, store: Any, what: str) -> None:
        self._store = store
        self._prefix = f"spmdguard/{what}/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
        self.num_requests = 0
        self.num_bytes = 0

    def first(self, key: str, value: str) -> str:
        """Set ``key`` unless it is set; the value that it has then."""
        return self._read(lambda name: self._store.compare_set(name, "", value), key, len(value))

    def set(self, key: str, value: str) -> None:
        """Set ``key``."""
        self._call(lambda name: self._store.set(name, value), key, len(value))

    def find(self, key: str) -> str | None:
        """The value of ``key``; None where it is not set."""
        if not self._call(lambda name: self._store.check([name]), key, 0):
            return None
        return self._read(lambda name: self._store.get(name), key, 0)

    def add(self, key: str, amount: int) -> int:
        """Add to a counter; its new value."""
        return int(self._call(lambda name: self._store.add(name, amount), key, 8))

    def delete(self, key: str) -> None:
        """Delete ``key``, where it is set."""
        self._call(lambda name: self._store.delete_key(name), key, 0)

    def _read(self, use: Any, key: str, size: int) -> str:
        value = self._call(use, key, size)
        self.num_bytes += len(value)
        return str(value[:MAX_VALUE_BYTES].decode(errors="replace"))

    def _call(self, use: Any, key: str, size: int) -> Any:
        name = f"{self._prefix}/{key}"
        self.num_requests += 1
        self.num_bytes += len(name) + size
        try:
            return use(name)
        except Exception as exc:
            raise LinkLost(str(exc)) from exc


def open_link(what: str) -> Link | None:
    """A new connection to the default group's store; None without a group."""
    c10d = loaded_c10d()
    if c10d is None or default_group() is None:
        return None
    try:
        store = c10d._get_default_store()
        own = store.clone() if hasattr(store, "clone") else store
        if own is not store:
            own.set_timeout(_TIMEOUT)
    except Exception as exc:
        raise LinkLost(str(exc)) from exc
    return Link(own, what)
