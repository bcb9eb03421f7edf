"""The watch's way to the job's store: over the program's own connection where that is free, else one of its own."""

from __future__ import annotations

import threading

import pytest

from spmdguard.group.link import Link, LinkLost


class Store:
    """A store of one process whose connection may be in use, and to which a new connection may take for ever."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.is_free = threading.Event()
        self.answers = threading.Event()
        self.num_clones = 0

    def compare_set(self, name: str, expected: str, value: str) -> bytes:
        assert self.is_free.wait(60)
        return self.values.setdefault(name, value).encode()

    def clone(self) -> Store:
        self.num_clones += 1
        assert self.answers.wait(60)
        own = Store()
        own.values = self.values
        own.is_free.set()
        return own

    def set_timeout(self, timeout: object) -> None:
        pass


@pytest.fixture
def store() -> Store:
    return Store()


def test_what_all_ask_needs_no_connection_of_its_own(store: Store) -> None:
    """An agreement goes over the program's connection where that is free."""
    store.is_free.set()
    links = [Link(None, "watch", lambda: store) for _ in range(2)]
    assert [link.agree("token", str(number)) for number, link in enumerate(links)] == ["0", "0"]
    assert store.num_clones == 0


def test_while_the_program_waits_another_connection_is_asked(store: Store) -> None:
    """Where the program holds its connection, the same key is agreed on over a new one."""
    store.answers.set()
    store.values["spmdguard/watch/0/token"] = "first"
    assert Link(None, "watch", lambda: store).agree("token", "second") == "first"
    assert store.num_clones == 1
    store.is_free.set()


def test_who_frees_the_connection_is_heard_before_a_new_one_is_there(store: Store) -> None:
    """Where a new connection does not come, the program's own is asked as soon as it is free."""
    threading.Timer(0.4, store.is_free.set).start()
    assert Link(None, "watch", lambda: store).agree("token", "a") == "a"
    store.answers.set()


def test_without_a_store_the_link_is_lost() -> None:
    """A store that is gone is told as one, whoever asks."""

    def gone() -> None:
        raise RuntimeError("no default group")

    for link in (Link(None, "watch"), Link(None, "watch", gone), Link(None, "watch", lambda: None)):
        with pytest.raises(LinkLost):
            link.agree("token", "a")
        with pytest.raises(LinkLost):
            link.add("nodes", 1)
