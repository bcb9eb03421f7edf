"""Batches of messages: ``P2POp`` objects that are made one by one and begun together by ``batch_isend_irecv``.

What was made on the way to a batch, and is in no batch before, is taken for its list. A batch is waited for as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.build import P2P
from ..traces.nodes import Event, Op
from ..values.evaluate import Valuation, truth
from ..values.value import constant

if TYPE_CHECKING:
    from ..values.value import Place, Value

_OPERATIONS = ("isend", "irecv")
_MORE = (">", "!=")
NOTHING = constant(0)


class Batches:
    """What one rank has made for its next batch, and which messages were begun by each batch."""

    def __init__(self) -> None:
        self.made: list[Op] = []
        self.begun: dict[Place, frozenset[Place]] = {}

    def add(self, event: Event, at: Valuation) -> bool:
        """A message for the next batch is made; False where it is not known which."""
        op = _message(event, at)
        if op is not None:
            self.made.append(op)
        return op is not None

    def take(self, batch: Place) -> list[Op]:
        """The messages that a batch begins."""
        taken, self.made = self.made, []
        self.begun[batch] = self.begun.get(batch, frozenset()) | {op.place for op in taken}
        return taken

    def waited(self, places: frozenset[Place]) -> frozenset[Place]:
        """The messages behind the handles that operations at these places gave."""
        return places.union(*(self.begun.get(place, frozenset()) for place in places))


def _message(event: Event, at: Valuation) -> Op | None:
    """The send or receive that a ``P2POp`` stands for on one rank."""
    given = dict(zip(("op", "tensor", "peer", "group", "tag", "group_peer"), event.args, strict=False))
    given.update(event.keywords)
    name = _name(given.get("op"), at)
    if name is None or "group_peer" in given or "peer" not in given:
        return None
    group = given.get("group")
    op = Op(event.place, name, "point-to-point", group, event.text, root=given["peer"])
    op.tensors = tuple(v for v in (given.get("tensor"),) if v is not None and v.tag in ("expr", "ite"))
    op.invariant = (given["tag"],) if "tag" in given else ()
    return op


def _name(value: Value | None, at: Valuation) -> str | None:
    while value is not None and value.tag == "ite":
        chosen = truth(value.data[0], at)
        value = None if chosen is None else value.data[1 if chosen else 2]
    name = str(value.data[0]).rpartition(".")[2] if value is not None and value.tag == "ext" else ""
    return name if name in _OPERATIONS else None


def is_message(event: Event) -> bool:
    """Whether an event makes a message for a batch."""
    return event.name == P2P


def asks_for_any(condition: Value) -> bool | None:
    """Whether a condition asks if a list has items (True), or if it has none (False); None for other conditions."""
    if condition.tag == "expr" and condition.data[0] == "not":
        asked = asks_for_any(condition.data[1][0])
        return None if asked is None else not asked
    if condition.tag == "expr" and condition.data[0] in _MORE and condition.data[1][1].key == NOTHING.key:
        condition = condition.data[1][0]
    label = condition.data[0] if condition.tag == "sym" else None
    return True if isinstance(label, tuple) and label[:1] in (("filled",), ("length",)) else None
