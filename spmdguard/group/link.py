"""A connection of our own to the job's store, for a thread beside the training.

The default store's connection is locked while the main thread waits for a key, so the watch has its own. To open one
may take long: for each connection torch's client and its server look up a name for the address, and a name server that
does not answer holds up the store, for all, for 5 s (torch 2.13). So it is opened on a thread, and only where it is
needed; the one question that every rank asks goes over the program's own connection where that is free.

Values are text; what is read is capped.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from spmdguard.group.torch_access import default_group, loaded_c10d

MAX_VALUE_BYTES = 4_000_000
_TIMEOUT = timedelta(seconds=5)
_FREE_S = 0.3
_AGREE_S = 60.0


class LinkLost(Exception):
    """The store cannot be reached any more."""


class Link:
    """Keys below ``spmdguard/<what>/<restart>/`` in the job's store; every method may raise ``LinkLost``.

    Args:
        store: a connection that nobody else uses; without one it is made of ``find_shared``'s when it is needed.
        what: the first part of the keys.
        find_shared: the connection that the program uses itself.
    """

    def __init__(self, store: Any, what: str, find_shared: Callable[[], Any] | None = None) -> None:
        self._store = store
        self._find_shared = find_shared
        self._opening: threading.Thread | None = None
        self._prefix = f"spmdguard/{what}/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
        self.num_requests = 0
        self.num_bytes = 0

    def open(self) -> bool:
        """Begin to open the connection, where that has not begun; whether it is there."""
        if self._store is None and self._opening is None:
            self._opening = threading.Thread(target=self._open, name="spmdguard link", daemon=True)
            self._opening.start()
        return self._store is not None

    def _open(self) -> None:
        try:
            shared: Any = self._find_shared() if self._find_shared is not None else None
            own = shared.clone() if hasattr(shared, "clone") else shared
            if own is not None and own is not shared:
                own.set_timeout(_TIMEOUT)
        except Exception:
            return  # whoever needs it is told that there is none
        self._store = own

    def agree(self, key: str, value: str) -> str:
        """As ``first``; over the program's own connection, unless the program waits on that for long."""
        found: list[str] = []
        find_shared = self._find_shared
        if self._store is not None or find_shared is None:
            return self.first(key, value)

        def ask() -> None:
            with contextlib.suppress(Exception):
                found.append(self._first(find_shared(), key, value))

        asking = threading.Thread(target=ask, name="spmdguard agreement", daemon=True)
        asking.start()
        asking.join(_FREE_S)
        deadline_s = time.monotonic() + _AGREE_S
        while not found and asking.is_alive() and not self.open() and time.monotonic() < deadline_s:
            asking.join(0.02)
        return found[0] if found else self.first(key, value)

    def first(self, key: str, value: str) -> str:
        """Set ``key`` unless it is set; the value that it has then."""
        return self._first(self._connection(), key, value)

    def set(self, key: str, value: str) -> None:
        """Set ``key``."""
        store = self._connection()
        self._call(lambda name: store.set(name, value), key, len(value))

    def find(self, key: str) -> str | None:
        """The value of ``key``; None where it is not set."""
        store = self._connection()
        if not self._call(lambda name: store.check([name]), key, 0):
            return None
        return self._read(store.get, key, 0)

    def add(self, key: str, amount: int) -> int:
        """Add to a counter; its new value."""
        store = self._connection()
        return int(self._call(lambda name: store.add(name, amount), key, 8))

    def delete(self, key: str) -> None:
        """Delete ``key``, where it is set."""
        self._call(self._connection().delete_key, key, 0)

    def _connection(self) -> Any:
        """The connection; waits for one that is being opened, as long as any request may take."""
        if not self.open() and self._opening is not None:
            self._opening.join(_TIMEOUT.total_seconds())
        if self._store is None:
            raise LinkLost("there is no connection to the job's store")
        return self._store

    def _first(self, store: Any, key: str, value: str) -> str:
        return self._read(lambda name: store.compare_set(name, "", value), key, len(value))

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
    """A link to the default group's store; None without a group."""
    if loaded_c10d() is None or default_group() is None:
        return None
    return Link(None, what, _default_store)


def _default_store() -> Any:
    c10d = loaded_c10d()
    return None if c10d is None else c10d._get_default_store()
