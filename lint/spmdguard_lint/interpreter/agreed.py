"""Values that ranks have compared: what all of them have found equal is the same on every rank from there on.

Terminology: a collective *carries* the values that its arguments are made of; what it has written is *shared*. A test
that compares what is shared (``if low != high: raise``, ``if len(set(everyone)) != 1``, ``if theirs != mine``) tells
that what was carried is equal, in the arm where the comparison holds.
Cost: linear in the conditions of a function that has called a collective on rank-varying values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..values.value import NO_TAINT, Value, is_const, retaint
from .contents import whole
from .frame import Frame
from .state import State

Keys = frozenset[Hashable]
_NOTHING: Keys = frozenset()
_ONE_AT_MOST = frozenset({("<=", True), (">", False)})


def carry(frame: Frame, written: Value, given: list[Value]) -> None:
    """Remember what a collective was given when it wrote into something."""
    reading = _Reading({}, frame.live)
    keys = frozenset(part.key for value in given for part in reading.parts(whole(frame, value)) if part.taint)
    if keys:
        frame.machine.carried[written.key] = keys


def note_agreed(frame: Frame, condition: Value, holds: bool) -> None:
    """In an arm in which shared values are equal, those that were carried lose their taint."""
    if not frame.machine.carried or frame.state is None:
        return
    equal = _Reading(frame.machine.carried, frame.state).found_equal(condition, holds)
    if not equal:
        return
    state = frame.state
    _clean(state.variables, equal)
    for object_id, fields in list(state.heap.items()):
        if any(value.taint and value.key in equal for value in fields.values()):
            state.heap[object_id] = dict(fields)
            _clean(state.heap[object_id], equal)


def _clean(named: dict[str, Value], equal: Keys) -> None:
    for name, value in named.items():
        if value.taint and value.key in equal:
            named[name] = retaint(value, NO_TAINT, None if value.trip is None else NO_TAINT)


class _Reading:
    """Reads a condition for what it says of shared values, through the containers of a state."""

    def __init__(self, carried: dict[Hashable, Keys], state: State) -> None:
        self.carried = carried
        self.state = state

    def found_equal(self, condition: Value, holds: bool) -> Keys:
        """The keys of what ranks have found equal where a condition holds, or where it does not."""
        if condition.tag != "expr":
            return _NOTHING
        operator, operands = condition.data
        if operator == "not":
            return self.found_equal(operands[0], not holds)
        if operator in ("and", "or"):
            if holds is not (operator == "and"):
                return _NOTHING
            return _NOTHING.union(*(self.found_equal(operand, holds) for operand in operands))
        if operator == ("all" if holds else "any"):
            items = [item for operand in operands for item in self._items(operand)]
            return self.found_equal(items[0], holds) if len(items) == 1 else _NOTHING
        if operator != ("==" if holds else "!=") or len(operands) != 2:
            return self._one_length(operands) if (operator, holds) in _ONE_AT_MOST else _NOTHING
        return self._one_length(operands) or self._compared(*operands)

    def _compared(self, first: Value, second: Value) -> Keys:
        """Two values that are equal: both shared, or one of them what this rank has given."""
        left, right = self._shared(first), self._shared(second)
        if left and right:
            return left & right
        return left | right if (second if left else first).key in left | right else _NOTHING

    def _one_length(self, operands: tuple[Value, ...]) -> Keys:
        """``len(set(values)) == 1``."""
        for count, one in (operands, operands[::-1]):
            if not is_const(one) or one.data[0] != 1 or count.tag not in ("sym", "expr"):
                continue
            if any(map(_is_set, self.parts(count))):
                return self._shared(count)
        return _NOTHING

    def _shared(self, value: Value) -> Keys:
        keys = (key for part in self.parts(value) for key in (part.key, _element_of(part)))
        return _NOTHING.union(*(self.carried.get(key, _NOTHING) for key in keys))

    def _items(self, value: Value) -> list[Value]:
        """What a container holds, as far as a value stands for one."""
        container = _container_of(value)
        return [] if container is None else list(self.state.heap.fields(container).values())

    def parts(self, value: Value) -> Iterator[Value]:
        """Every value that an expression is made of, itself and what is in its containers included."""
        seen: set[Hashable] = set()
        stack = [value]
        while stack:
            current = stack.pop()
            if current.key in seen:
                continue
            seen.add(current.key)
            yield current
            stack.extend(self._items(current))
            if current.tag == "expr":
                stack.extend(current.data[1])
            elif current.tag in ("ite", "tuple"):
                stack.extend(current.data)


def _is_set(value: Value) -> bool:
    container = _container_of(value)
    return (value.tag == "expr" and value.data[0] == "set") or (
        container is not None and container[0] == "set"
    )


def _container_of(value: Value) -> tuple[Hashable, ...] | None:
    """The container whose contents or length a value is."""
    name = value.data[0] if value.tag == "sym" and value.data else None
    if not isinstance(name, tuple) or name[:1] not in (("contents",), ("length",)):
        return None
    return name[1] if len(name) > 1 and isinstance(name[1], tuple) else None


def _element_of(value: Value) -> Hashable:
    """The key of what a value is an element of."""
    name = value.data[0] if value.tag == "sym" and value.data else None
    return name[2] if isinstance(name, tuple) and name[:1] == ("element",) and len(name) == 3 else None
