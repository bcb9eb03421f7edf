"""What the search for divergences deals with: candidates, verdicts and divergences."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from ..values.value import Place, Taint, Taints, Value, taint_order
from .nodes import Call, Handler, Jump, Node, Op, Tree
from .terms import Continuation


@dataclass
class Divergence:
    """One place where ranks may part.

    ``shape``: "arm" (operations in one arm only), "order" (in both, unequal), "exit" (an early exit skips
    operations), "trip" (a loop runs a different number of times), "swallow" (a handler goes on after a body
    with collectives), "handler" (a collective in an exception path). ``caught`` says of an exit by a raise that a
    handler catches it and goes on: the rank lives, and meets the others elsewhere. ``meets`` is the operation that
    the rank of an exit comes to first, ``handed`` where an exit of a wrapper passes the function that it was handed.
    """

    shape: str
    node: Node
    place: Place
    text: str
    condition: Value | None
    condition_place: Place
    condition_text: str
    form: str
    taints: tuple[Taint, ...]
    calls: tuple[Call, ...]
    diverging: tuple[str, ...]
    others: tuple[str, ...]
    through_call: str = ""
    jump: Jump | None = None
    operation: Op | None = None
    subgroup: bool = False
    implicit: bool = False
    regions: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)
    caught: bool = False
    meets: Op | None = None
    handed: Node | None = None

    @property
    def kind(self) -> str:
        """The strongest reason for rank variance."""
        return self.taints[0].kind if self.taints else "data"

    @property
    def certainty(self) -> str:
        """How sure the strongest reason is; operations known by name only make it weaker."""
        order = ["definite", "likely", "possible"]
        best = min((order.index(t.certainty) for t in self.taints), default=1)
        if self.operation is not None:
            best = max(best, order.index(self.operation.certainty))
        if self.kind not in ("rank", "group-rank"):
            best = max(best, 1)
        return order[best]


def by_exception(
    shape: str,
    candidate: Candidate,
    handler: Handler,
    shown: tuple[Place, str],
    columns: tuple[tuple[str, ...], tuple[str, ...]],
    certainty: str = "likely",
    **more: Any,
) -> Divergence:
    """A divergence of the rank that comes to a clause, where the others have no exception.

    ``shown`` is where to point and the text there, ``columns`` what that rank does in and behind the clause and what
    the others do.
    """
    node = candidate.node
    after_error, normal = columns
    return Divergence(
        shape,
        node,
        *shown,
        None,
        handler.place,
        handler.text,
        "except",
        (Taint("exception", node.place, "an exception on one rank only", certainty),),
        candidate.k.calls,
        ("an exception in the try body", *after_error),
        normal,
        regions=candidate.k.regions,
        **more,
    )


def variance(taint: Taints) -> tuple[Taint, ...]:
    """The reasons that count, strongest first."""
    return tuple(sorted((t for t in taint if t.kind != "synced"), key=taint_order))


@dataclass
class Candidate:
    kind: str
    node: Node
    then: int
    orelse: int
    k: Continuation
    chain: tuple[tuple[Tree, Continuation], ...]
    taints: tuple[Taint, ...]
    body_k: Continuation | None


class Verdicts:
    """What earlier roots have shown of places in functions that several roots reach.

    A branch that its own function matches is safe wherever the very same nodes are remembered for a call (with
    other arguments the arms may do something else), and one that is bad in a context is reported whatever other
    contexts say: neither is judged again, but where the reason is a surer one.
    """

    def __init__(self) -> None:
        self.safe: set[tuple[int, bool]] = set()
        self.bad: dict[tuple[Place, bool, str], int] = {}


def group_key(op: Op) -> Hashable:
    """The group of an operation in traces; None for the default group."""
    return None if op.group is None or is_default_group(op.group) else op.group.key


def is_default_group(group: Value) -> bool:
    """Whether a group argument means the default group."""
    if group.tag == "const":
        return group.data[0] is None
    if group.tag == "sym" and isinstance(group.data[0], tuple) and group.data[0][:1] == ("param-none",):
        return True
    if group.tag == "ext":
        return str(group.data[0]).endswith("WORLD")
    if group.tag == "ite":
        return is_default_group(group.data[1]) and is_default_group(group.data[2])
    return group.tag == "extobj" and "WORLD" in str(group.data[1])
