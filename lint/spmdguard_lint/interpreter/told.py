"""Values that a broadcast tells where each arm of a branch on the rank makes it: the root sends, the others receive.

Terminology: the *n-th broadcast* of an arm is its n-th operation of that kind on all ranks. Behind the branch, what the
one arm has sent in its n-th broadcast and the other arm has received in its own n-th is the same on every rank::

    if rank == 0:
        broadcast_object_list([text, stop])
    else:
        box = [None, None]
        broadcast_object_list(box)
        text, stop = box

Cost: one visit of the nodes of the two arms of a branch on the rank.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from ..traces.judged import group_key
from ..traces.nodes import Branch, Loop, Op, Tree
from ..traces.own_data import joined_parts
from ..values.value import NO_TAINT, Place, Value, is_const, retaint, symbol
from .containers import frozen
from .frame import Frame
from .state import State

_READ = frozenset({"bool", "int", "float", "item", "getitem", "cpu", "tolist"})


def sent_keys(frame: Frame, value: Value) -> frozenset[Hashable]:
    """What a broadcast is given: a value, or the items of a container."""
    keys: set[Hashable] = set()
    if value.tag == "obj":
        keys.update(item.key for item in frame.live.heap.fields(value.data[0]).values() if not is_const(item))
    else:
        keys.update(key for key, _ in joined_parts(frozen(frame, value)))
    return frozenset(keys)


def note_told(frame: Frame, node: ast.If, arms: tuple[Tree, Tree], states: tuple[State, State]) -> None:
    """Behind a branch, what its arms have sent and received in the same broadcast is the same on every rank."""
    places = [[op.place for op in _broadcasts(arm)] for arm in arms]
    names = [[op.name for op in _broadcasts(arm)] for arm in arms]
    if not names[0] or names[0] != names[1]:
        return
    asked = [_Arm(frame, state, one) for state, one in zip(states, places, strict=True)]
    joined = frame.live
    for name, value in list(joined.variables.items()):
        first, second = (arm.state.variables.get(name) for arm in asked)
        if first is None or second is None or not (value.taint or value.trip):
            continue
        label = ("filled", frame.place(node), name)
        if first.tag == second.tag == "obj":
            number = asked[0].container(first)
            if number is not None and number == asked[1].container(second):
                kept = symbol(label, NO_TAINT)
                object_id = first.data[0]
                joined.heap[object_id] = dict.fromkeys(joined.heap.fields(object_id), kept)
                joined.variables[name] = retaint(first, NO_TAINT, first.trip)
            continue
        numbers = [arm.number(one) for arm, one in ((asked[0], first), (asked[1], second))]
        if numbers[0] is not None and numbers[0] == numbers[1]:
            joined.variables[name] = symbol(label, NO_TAINT)


def _broadcasts(arm: Tree) -> Iterator[Op]:
    """The broadcasts of an arm on all ranks that it makes each time, outside loops."""
    for node in arm:
        if isinstance(node, Op) and node.name.startswith("broadcast") and group_key(node) is None:
            yield node
        elif not isinstance(node, (Loop, Branch)):
            for child in node.subtrees():
                yield from _broadcasts(child)


class _Arm:
    """One arm of a branch: the state at its end, and what its broadcasts were given and have written, in order."""

    def __init__(self, frame: Frame, state: State, places: list[Place]) -> None:
        self.state = state
        known = frame.machine.broadcast
        self.told = [known.get(place, (frozenset[Hashable](), None)) for place in places]

    def number(self, value: Value) -> int | None:
        """Which broadcast has told a value, or has been given it."""
        for number, (sent, written) in enumerate(self.told):
            if value.key in sent or written in _read_out_of(value):
                return number
        return None

    def container(self, value: Value) -> int | None:
        """Which broadcast has filled all that a container holds."""
        held = self.state.heap.fields(value.data[0]).values()
        numbers = {self.number(item) for item in held}
        return numbers.pop() if len(numbers) == 1 else None


def _read_out_of(value: Value) -> tuple[Hashable, ...]:
    """The keys of what a value is read out of: of ``flag`` for ``bool(flag[0].item())``."""
    while value.tag == "expr" and value.data[0].removeprefix("call:").rpartition(".")[2] in _READ:
        value = value.data[1][0]
    label = value.data[0] if value.tag == "sym" else None
    if isinstance(label, tuple) and len(label) == 3 and label[0] == "element":
        return (value.key, label[2])
    return (value.key,)
