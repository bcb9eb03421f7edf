"""Files by which one rank tells others that it is done: they look for it again and again until it is there.

Terminology: a *poll* is a look for a file in a loop that is left where the file is there. It orders what follows on the
rank that polls, and tells the rank that has made the file nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.files import ASKED, LOCAL, WRITES, Access, accesses, chain, shared
from ..traces.nodes import Branch, Jump, Loop, every_node
from ..values.value import Value, parts_of
from .support_events import comes_from

if TYPE_CHECKING:
    from ..analysis import Root

_OF_ONE = frozenset({"rank", "local_rank", "group_rank"})
_OUT = frozenset({"end", "break", "return"})


class Unseen(NamedTuple):
    """A file that the rank takes away that has made it, and the poll of another rank that may not have seen it."""

    taker: Access
    poll: Access


def taken_unseen(root: Root) -> Iterator[Unseen]:
    """Files that ranks take away without knowing whether the others have seen them.

    In a root that was not read to its end a call beyond it may be the barrier.
    """
    events = root.contents.events
    if root.exceeded or root.truncated or "seen" not in events or not events & {"remove", "rename"}:
        return
    takers = [a for a in root.accesses if a.kind in ("remove", "rename") and 0 < len(a.ranks) < 4]
    asked = accesses(root.tree, ASKED) if takers else []
    polls = [access for access in asked if _is_poll(access)]
    for taker in takers:
        seen = next((poll for poll in polls if _may_miss(poll, taker, root.accesses)), None)
        if seen is not None:
            yield Unseen(taker, seen)


def _is_poll(access: Access) -> bool:
    """Whether a rank looks for a file until it is there."""
    loop = next((w.node for w in chain(access.where) if isinstance(w.node, Loop)), None)
    if loop is None or loop.form != "while":
        return False
    return any(
        isinstance(node, Branch) and comes_from(node.condition, {access.node.place}) and _left_if_there(node)
        for node in every_node(loop.body)
    )


def _left_if_there(node: Branch) -> bool:
    """Whether a test for a file leaves the loop where the file is there, and not where it is gone."""
    leaves = [any(isinstance(n, Jump) and n.kind in _OUT for n in arm) for arm in (node.then, node.orelse)]
    if leaves[0] == leaves[1]:
        return False
    value, there = node.condition, leaves[0]
    while value.tag == "expr" and value.data[0] == "not":
        value, there = value.data[1][0], not there
    return there and not any(part.tag == "expr" and part.data[0] == "not" for part in parts_of(value))


def _may_miss(poll: Access, taker: Access, known: list[Access]) -> bool:
    """Whether ranks poll for what another rank makes and takes away, and nothing orders the two."""
    together = [
        value for value, path in zip(taker.values[:1], taker.paths, strict=False) if path in poll.paths
    ]
    if not together or not _made_before(taker, known):
        return False
    hosts = not shared(together[0])
    if hosts and not _of_host(together[0]):
        return False
    return any(not hosts or other // LOCAL == rank // LOCAL for other, rank in poll.beside(taker))


def _made_before(taker: Access, known: list[Access]) -> bool:
    return any(
        one.kind in WRITES
        and one.index < taker.index
        and taker.ranks <= one.ranks
        and taker.paths[0] in one.paths
        for one in known
    )


def _of_host(value: Value) -> bool:
    """Whether the ranks of a host compute the same path, and those of another host another one."""
    parts = list(parts_of(value))
    named = any(part.tag == "node_rank" for part in parts)
    return named and not any(part.tag in _OF_ONE for part in parts)
