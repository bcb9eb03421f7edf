"""The job's store: values, waits, connections, and every way in which it can be unreachable."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

from spmdguard.errors import StoreUnreachable
from spmdguard.group import store as stores
from spmdguard.group.store import JobStore, StoreAddress, connect, find_address

from ..processes.ports import free_port


@pytest.fixture
def store() -> Iterator[JobStore]:
    """A store that this process holds."""
    address = StoreAddress("127.0.0.1", free_port(), held_here=True)
    yield connect(address, 10)
    stores._held.pop((address.host, address.port))


def test_values_are_json(store: JobStore) -> None:
    """Values come back as they were written, also over another connection and below a common prefix."""
    other = connect(store.address._replace(held_here=False), 10).under("x", 1)
    value = {"a": [1, "é", None, 2.5]}
    store.under("x", 1).set("k", value)
    assert value == other.get("k", 5) == other.find("k") == store.under("x").find("1/k")
    assert (other.find("missing"), other.has("k", "missing")) == (None, False)


def test_waiting_ends(store: JobStore) -> None:
    """Waiting for what nobody writes ends at the timeout; get raises and wait says False."""
    assert store.wait(["never"], 0.05) is False
    with pytest.raises(TimeoutError, match=r"nobody wrote 'never' within 0\.05 s"):
        store.get("never", 0.05)
    assert store.poll(["never"], 0.05) is False
    assert store.get_texts(["never"]) is None


def test_a_waiting_thread_does_not_hold_others_up(store: JobStore) -> None:
    """A thread with its own connection waits while this one writes what it waits for."""
    background = store.another_connection()
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(background.get("later", 10)))
    thread.start()
    assert store.add("n") == 1
    store.set("later", 1)
    thread.join(10)
    assert found == [1]


def test_counters_and_claims(store: JobStore) -> None:
    """A counter counts, reading does not change it, and only the first claim of a key succeeds."""
    assert (store.add("n", 2), store.add("n", 0), store.add("n", 3)) == (2, 2, 5)
    assert (store.claim("c", "me"), store.claim("c", "you"), store.claim("c", "me")) == (True, False, True)
    assert (store.delete("c"), store.delete("c")) == (True, False)


@pytest.mark.parametrize("value", [b"\xff", b"{", b"[" * 100_000, b" " * (stores.MAX_VALUE_BYTES + 1)])
def test_hostile_values_are_value_errors(store: JobStore, value: bytes) -> None:
    """What is no JSON, nested without end or too large is a ValueError."""
    store.raw().set("spmdguard/hostile", value)
    with pytest.raises(ValueError, match="value"):
        store.find("hostile")


def test_own_values_are_capped(store: JobStore) -> None:
    """A value over the limit is refused before it is sent."""
    with pytest.raises(ValueError, match="over the limit"):
        store.set("big", "x" * stores.MAX_VALUE_BYTES)


@contextlib.contextmanager
def listener(answer: bytes | None) -> Iterator[int]:
    """A service that is no store: it answers, or says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    kept.append(connection)
                    if answer is not None:
                        connection.sendall(answer)
                        connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        for connection in kept:
            connection.close()


@pytest.mark.parametrize(
    ("answer", "kind"), [(b"HTTP/1.1 400 Bad Request\r\n", "foreign"), (None, "silent"), (b"", "closed")]
)
def test_a_service_that_is_no_store_is_found_out(answer: bytes | None, kind: str) -> None:
    """Another service, a silent one and one that hangs up are told apart, in bounded time."""
    with listener(answer) as port:
        started_s = time.monotonic()
        with pytest.raises(StoreUnreachable) as caught:
            connect(StoreAddress("127.0.0.1", port), 0.5)
        assert kind == caught.value.kind
        assert time.monotonic() - started_s < 20


def test_nobody_listening_and_unknown_names() -> None:
    """A port where nothing listens is `refused`, a name that nobody knows `unresolvable`."""
    with pytest.raises(StoreUnreachable) as refused:
        connect(StoreAddress("127.0.0.1", free_port()), 0.2)
    with pytest.raises(StoreUnreachable) as unknown:
        connect(StoreAddress("no-such-host.invalid", 29500), 5, resolve_timeout_s=0.1)
    assert (refused.value.kind, unknown.value.kind) == ("refused", "unresolvable")
    assert "no-such-host.invalid:29500" in str(unknown.value)


def test_a_taken_port_is_found_out_at_once() -> None:
    """Holding the store on a port that something else uses fails with `taken`."""
    with listener(None) as port, pytest.raises(StoreUnreachable) as caught:
        connect(StoreAddress("127.0.0.1", port, held_here=True), 10)
    assert caught.value.kind == "taken"


def test_addresses_come_from_the_environment() -> None:
    """Rank 0 holds the store unless torchrun's agent does; what is missing or wrong is named."""
    env = {"MASTER_ADDR": "a", "MASTER_PORT": "1234"}
    assert StoreAddress("a", 1234, True) == find_address(env, rank=0)
    assert StoreAddress("a", 1234, False) == find_address(env, rank=1)
    assert not find_address({**env, "TORCHELASTIC_USE_AGENT_STORE": "True"}, rank=0).held_here
    for wrong, named in (
        ({"MASTER_ADDR": ""}, "MASTER_ADDR is not set"),
        ({"MASTER_PORT": ""}, "MASTER_PORT is not set"),
        ({"MASTER_PORT": "99999"}, "MASTER_PORT is '99999', expected a port"),
    ):
        with pytest.raises(ValueError, match=named):
            find_address({**env, **wrong}, rank=0)
