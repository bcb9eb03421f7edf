"""Between nodes: leaders publish, raise alarms and gather, over a real store; two nodes are two boards here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spmdguard.group.link import Link, LinkLost
from spmdguard.watch.board import Board
from spmdguard.watch.relay import HOST_GONE_S, LISTEN_S, PUBLISH_S, Relay, read_node

from .making import call, waiting


class Clock:
    """A clock that the test sets."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def store() -> Iterator[Any]:
    dist = pytest.importorskip("torch.distributed")
    yield dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


@pytest.fixture
def nodes(store: Any, tmp_path: Path) -> tuple[Relay, Relay, Clock]:
    """Two nodes of two ranks each."""
    clock = Clock()
    made = [Relay(Link(store.clone(), "watch"), Board(tmp_path / str(n), 2 * n), clock) for n in range(2)]
    return made[0], made[1], clock


def standing(rank: int) -> Any:
    return waiting(rank, 4, [call(1, "all_reduce", 10), call(2, "barrier", 20)])


def test_what_nodes_answer_is_gathered(nodes: tuple[Relay, Relay, Clock]) -> None:
    """Detailed answers of the other nodes are found, with the calls of their ranks."""
    here, there, _ = nodes
    there.publish([standing(2), standing(3)], detail=True)
    found = here.gather(5.0)
    assert [each.rank for each in found] == [2, 3]
    assert [len(each.calls) for each in found] == [2, 2]


def test_what_a_node_last_said_stands_in_for_an_answer(nodes: tuple[Relay, Relay, Clock]) -> None:
    """Of a node that does not answer its last word is taken, which has neither calls nor members of groups."""
    here, there, clock = nodes
    there.publish([standing(2)])
    clock.now_s += 10.0
    (found,) = here.gather(-1.0)
    assert (found.rank, found.calls, found.groups[0].members, found.groups[0].number) == (2, (), "", 2)


def test_nodes_publish_and_listen_no_more_often_than_they_should(nodes: tuple[Relay, Relay, Clock]) -> None:
    """Between its intervals a node asks nothing of the store."""
    here, _, clock = nodes
    assert here.is_due()
    here.publish([standing(0)])
    here.listen()
    before = here._link.num_requests
    clock.now_s += min(PUBLISH_S, LISTEN_S) / 2
    assert (here.is_due(), here.listen(), here._link.num_requests) == (False, {}, before)


def test_the_first_cause_stays_and_reaches_all(nodes: tuple[Relay, Relay, Clock]) -> None:
    """A second cause is answered with the first, and a node that listens learns of it."""
    here, there, clock = nodes
    assert there.raise_alarm("cause", {"title": "a"}) == {"title": "a"}
    assert here.raise_alarm("cause", {"title": "b"}) == {"title": "a"}
    clock.now_s += LISTEN_S
    assert there.listen() == {"cause": {"title": "a"}}
    assert there.listen() == {}


def test_a_cause_is_heard_when_every_other_node_has_said_so(nodes: tuple[Relay, Relay, Clock]) -> None:
    """Who holds the store waits for the nodes that have not heard of the cause, in bounded time."""
    here, there, _ = nodes
    here.publish([standing(0)])
    there.publish([standing(2)])
    here.raise_alarm("cause", {"title": "a"})
    assert not here.wait_until_heard(-1.0)
    there.confirm()
    assert here.wait_until_heard(-1.0)


def test_a_call_can_be_withdrawn(nodes: tuple[Relay, Relay, Clock]) -> None:
    """Where ranks met after all, the call and the answers to it are gone."""
    here, there, _ = nodes
    here.raise_alarm("call", {"rank": 0})
    there.publish([standing(2)], detail=True)
    assert there.is_called()
    here.withdraw()
    assert not there.is_called()
    assert here.gather(-1.0) == []


def test_a_host_that_says_nothing_has_died() -> None:
    """Ranks of a node whose last word is old count as dead, but for those that had ended."""
    text = '{"at": 100, "ranks": [{"rank": 4, "state": "waiting"}, {"rank": 5, "state": "ended"}]}'
    found = read_node(text, 100 + HOST_GONE_S + 1)
    assert [(each.rank, each.state) for each in found] == [(4, "died"), (5, "ended")]
    assert [each.state for each in read_node(text, 101.0)] == ["waiting", "ended"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"at": "x", "ranks": []}', '{"at": 1, "ranks": [[]]}', "[" * 99_999]
)
def test_what_a_stranger_wrote_does_no_harm(nodes: tuple[Relay, Relay, Clock], store: Any, text: str) -> None:
    """Values that no leader wrote are no standings, calls or causes."""
    here, _, _ = nodes
    prefix = here._link._prefix
    for key in ("node/1", "detail/1", "call", "cause"):
        store.set(f"{prefix}/{key}", text)
    store.add(f"{prefix}/alarm", 1)
    assert here.gather(-1.0) == []
    assert [note for note in here.listen().values() if "ranks" not in note] == []


def test_a_store_that_is_gone_is_told(tmp_path: Path) -> None:
    """Where the store fails, the link says so with one kind of error."""

    class Gone:
        def check(self, keys: list[str]) -> bool:
            raise RuntimeError("Connection reset by peer")

    with pytest.raises(LinkLost, match="reset by peer"):
        Link(Gone(), "watch").find("cause")
