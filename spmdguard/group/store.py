"""The job's own rendezvous store, as a place for small JSON values: the only file that opens a TCPStore.

torchrun's agent holds the store where ``TORCHELASTIC_USE_AGENT_STORE`` says so; otherwise rank 0 does, and the
process group that is made later in that process shares the same server. Values are untrusted: JSON only, with a cap.

One connection serves one caller at a time: a call that waits holds it. A background thread takes
``JobStore.another_connection``. Every wait has a timeout; torch's own constructor waits for ever for a listener that
accepts and stays silent (torch 2.13), so ``reach_store`` asks first.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from spmdguard.errors import StoreUnreachable
from spmdguard.group.bounded import DidNotReturn, call_bounded

__all__ = [
    "MAX_VALUE_BYTES",
    "JobStore",
    "StoreAddress",
    "connect",
    "find_address",
    "load_torch_store",
    "reach_store",
]

MAX_VALUE_BYTES = 2**20
PREFIX = "spmdguard"
_PROBE_TIMEOUT_S = 2.0
_CALL_TIMEOUT_S = 30.0
_VALIDATE = struct.pack("<BI", 0, 0x3C85F7CE)
_PING = 13
_held: dict[tuple[str, int], Any] = {}  # servers that this process holds; they live as long as it does


class StoreAddress(NamedTuple):
    """Where the job's store is, and whether this process has to hold it."""

    host: str
    port: int
    held_here: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def find_address(environment: Mapping[str, str] | None = None, *, rank: int | None) -> StoreAddress:
    """The address in ``MASTER_ADDR`` and ``MASTER_PORT``.

    Raises:
        ValueError: a variable is not set or no port; the message names it.
    """
    env = os.environ if environment is None else environment
    host = env.get("MASTER_ADDR", "").strip()
    port = env.get("MASTER_PORT", "").strip()
    if not host:
        raise ValueError("MASTER_ADDR is not set")
    if not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"MASTER_PORT is {port!r}, expected a port" if port else "MASTER_PORT is not set")
    agent_holds = env.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return StoreAddress(host, int(port), held_here=rank == 0 and not agent_holds)


def connect(address: StoreAddress, timeout_s: float, *, resolve_timeout_s: float | None = None) -> JobStore:
    """Connect to the job's store; hold it first where that is this process's part.

    Args:
        address: where it is.
        timeout_s: how long to wait for the one that holds it.
        resolve_timeout_s: how long the host's name may stay unknown; ``timeout_s`` without it.

    Raises:
        StoreUnreachable: it could not be held or reached; its ``kind`` says why.
    """
    deadline_s = time.monotonic() + timeout_s
    _resolve(address, min(deadline_s, time.monotonic() + (resolve_timeout_s or timeout_s)))
    if address.held_here:
        return _hold(address, max(deadline_s - time.monotonic(), 0.1))
    reach_store(address, deadline_s)
    return JobStore(_open(address, max(deadline_s - time.monotonic(), 1.0), is_master=False), address)


class JobStore:
    """Small JSON values under one prefix, over one connection."""

    def __init__(self, store: Any, address: StoreAddress, prefix: str = PREFIX) -> None:
        self.address = address
        self._store = store
        self._prefix = prefix

    def under(self, *parts: object) -> JobStore:
        """The same connection, with keys below ``parts``."""
        return JobStore(self._store, self.address, "/".join([self._prefix, *map(str, parts)]))

    def another_connection(self, timeout_s: float = _CALL_TIMEOUT_S) -> JobStore:
        """The same keys over a connection of its own, for a thread that waits."""
        client = self.address._replace(held_here=False)
        return JobStore(_open(client, timeout_s, is_master=False), client, self._prefix)

    def set(self, key: str, value: Any) -> None:
        """Write ``value`` as JSON.

        Raises:
            ValueError: it has over ``MAX_VALUE_BYTES``, or is nothing that JSON has.
        """
        self.set_text(key, json.dumps(value, separators=(",", ":"), allow_nan=False))

    def set_text(self, key: str, text: str) -> None:
        """Write text as it is."""
        if len(text) > MAX_VALUE_BYTES:
            raise ValueError(
                f"the value of {key!r} has {len(text)} bytes, over the limit of {MAX_VALUE_BYTES}"
            )
        self._store.set(self._name(key), text)

    def get(self, key: str, timeout_s: float) -> Any:
        """Wait for a key and read its JSON.

        Raises:
            TimeoutError: nobody has written it in time.
            ValueError: what is there is too large or no JSON.
        """
        if not self.wait([key], timeout_s):
            raise TimeoutError(f"nobody wrote {key!r} within {timeout_s:g} s")
        return read_value(self._store.get(self._name(key)))

    def find(self, key: str) -> Any:
        """The JSON of a key; None where nobody has written it. ``ValueError`` as in ``get``."""
        return read_value(self._store.get(self._name(key))) if self.has(key) else None

    def has(self, *keys: str) -> bool:
        """Whether all keys are written; does not wait."""
        return bool(self._store.check([self._name(key) for key in keys]))

    def wait(self, keys: Sequence[str], timeout_s: float) -> bool:
        """Wait until all keys are written; False where that takes longer. Connection errors are raised.

        One request, which the store answers when it can; where the timeout passes, torch writes two lines of
        warning to stderr. For waits that often end without an answer use ``poll``.
        """
        names = [self._name(key) for key in keys]
        try:
            self._store.wait(names, timedelta(seconds=max(timeout_s, 0.001)))
        except RuntimeError as error:
            if "timeout" not in str(error).lower():
                raise
            return False
        return True

    def poll(self, keys: Sequence[str], timeout_s: float, *, interval_s: float = 0.02) -> bool:
        """As ``wait``, by asking again and again: silent where the timeout passes, and dearer for the store."""
        deadline_s = time.monotonic() + timeout_s
        while not self.has(*keys):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(interval_s, left_s))
        return True

    def get_texts(self, keys: Sequence[str]) -> list[bytes] | None:
        """Read all keys in one request; None where some are not written."""
        names = [self._name(key) for key in keys]
        if not names:
            return []
        if not self.has(*keys):
            return None
        return [bytes(value) for value in self._store.multi_get(names)]

    def add(self, key: str, amount: int = 1) -> int:
        """Add to a counter that begins at 0 and return its new value; ``amount`` 0 reads it."""
        return int(self._store.add(self._name(key), amount))

    def claim(self, key: str, owner: str) -> bool:
        """Whether ``owner`` is the one that wrote ``key`` first."""
        return bool(self._store.compare_set(self._name(key), "", owner) == owner.encode())

    def delete(self, key: str) -> bool:
        """Delete a key; whether it was there."""
        return bool(self._store.delete_key(self._name(key)))

    def raw(self) -> Any:
        """The torch store itself, for ``init_process_group``."""
        return self._store

    def _name(self, key: str) -> str:
        return f"{self._prefix}/{key}"


def read_value(value: bytes) -> Any:
    """The JSON in a value of the store; ``ValueError`` where it is too large or none."""
    if len(value) > MAX_VALUE_BYTES:
        raise ValueError(f"a value of {len(value)} bytes is over the limit of {MAX_VALUE_BYTES}")
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a value is no JSON ({type(error).__name__})") from None


def reach_store(address: StoreAddress, deadline_s: float) -> None:
    """Return as soon as a store answers at ``address``; ``deadline_s`` is an instant of ``time.monotonic``.

    Raises:
        StoreUnreachable: nothing listens there, or what listens is no store.
    """
    pause_s = 0.02
    while True:
        kind, reason = _ask(address, max(0.05, min(_PROBE_TIMEOUT_S, deadline_s - time.monotonic())))
        if kind == "store":
            return
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or kind == "foreign":
            raise StoreUnreachable(address=str(address), kind=kind, reason=reason)
        time.sleep(min(left_s, pause_s * (0.5 + random.random())))
        pause_s = min(pause_s * 1.5, 0.5)


def _ask(address: StoreAddress, timeout_s: float) -> tuple[str, str]:
    """``store``, or how else the listener behaves and the reason in words: one ping of torch's protocol."""
    nonce = struct.pack("<I", random.getrandbits(32))
    try:
        with socket.create_connection((address.host, address.port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(_VALIDATE + bytes([_PING]) + nonce)
            answer = b""
            while len(answer) < len(nonce):
                received = connection.recv(len(nonce) - len(answer))
                if not received:
                    return "closed", "the listener closed the connection"
                answer += received
    except socket.gaierror as error:
        return "unresolvable", error.strerror or str(error)
    except ConnectionRefusedError:
        return "refused", "nothing listens there"
    except (ConnectionResetError, BrokenPipeError):
        return "closed", "the listener closed the connection"
    except TimeoutError:
        return "silent", "no answer: the host is unreachable, or what listens there is no store"
    except OSError as error:
        return "refused", error.strerror or str(error)
    return ("store", "") if answer == nonce else ("foreign", "what listens there is no store")


def _resolve(address: StoreAddress, deadline_s: float) -> None:
    while True:
        try:
            socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            if time.monotonic() >= deadline_s:
                reason = getattr(error, "strerror", None) or str(error)
                raise StoreUnreachable(address=str(address), kind="unresolvable", reason=reason) from None
            time.sleep(min(0.2, max(0.01, deadline_s - time.monotonic())))
        else:
            return


def _hold(address: StoreAddress, timeout_s: float) -> JobStore:
    try:
        store = _held.get((address.host, address.port)) or _open(address, timeout_s, is_master=True)
    except StoreUnreachable as error:
        if error.kind == "refused" and not is_local_address(address.host):
            reason = f"{address.host} is no address of this host"
            raise StoreUnreachable(address=str(address), kind="elsewhere", reason=reason) from None
        raise
    _held[(address.host, address.port)] = store
    return JobStore(store, address)


def load_torch_store() -> Any:
    """torch's ``TCPStore``; importing torch takes seconds, which a deadline should not count."""
    import torch.distributed
    from torch._C._distributed_c10d import TCPStore

    assert torch.distributed.is_available()
    return TCPStore


def _open(address: StoreAddress, timeout_s: float, *, is_master: bool) -> Any:
    store_class = load_torch_store()
    options = {"use_libuv": False} if is_master and os.environ.get("USE_LIBUV") == "0" else {}

    def open_store() -> Any:
        return store_class(
            address.host,
            address.port,
            is_master=is_master,
            timeout=timedelta(seconds=timeout_s),
            wait_for_workers=False,
            multi_tenant=True,
            **options,
        )

    try:
        return call_bounded(open_store, timeout_s + _PROBE_TIMEOUT_S, "store connection")
    except DidNotReturn:
        raise StoreUnreachable(address=str(address), kind="silent", reason="no answer") from None
    except RuntimeError as error:
        text = str(error)
        taken = "EADDRINUSE" in text or os.strerror(errno.EADDRINUSE).lower() in text.lower()
        reason = text.splitlines()[0] if text else type(error).__name__
        kind = "taken" if taken else "refused"
        raise StoreUnreachable(address=str(address), kind=kind, reason=reason) from None


def is_local_address(host: str) -> bool:
    """Whether this host can listen on the address that a name leads to; True where it cannot be known."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return True
    for family, kind, protocol, _, place in found:
        with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as probe:
            probe.bind(place)
            return True
    return False
