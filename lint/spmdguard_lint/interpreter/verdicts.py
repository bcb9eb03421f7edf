"""What a rank tells the others of an error that it has caught: that all went well, or that something failed.

Terminology: a value is a *verdict* on a try statement where whether an exception was caught there decides if it is true
(``ok``, ``int(ok)``, ``torch.tensor([1 if ok else 0])``, ``error is None``). It says *success* where it is true without
an exception, *failure* where it is true with one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from ..traces.nodes import Verdict
from ..values.value import Value
from .frame import Frame

if TYPE_CHECKING:
    from ..values.value import Place

Answers = frozenset[bool]
_DEPTH = 12
_TRUE, _FALSE, _UNKNOWN = frozenset({True}), frozenset({False}), frozenset[bool]()
_WRAPS = frozenset(
    {"int", "float", "bool", "tensor", "as_tensor", "Tensor", "IntTensor", "LongTensor", "FloatTensor"}
)
_KEEPS = frozenset(
    {"to", "cuda", "cpu", "long", "half", "double", "byte", "type", "view", "reshape", "unsqueeze", "item"}
)
_CONTAINERS = frozenset({"list", "tuple", "array"})


def verdict_on(frame: Frame, values: list[Value]) -> Verdict | None:
    """The verdict among the values that an operation is given."""
    for value in values:
        if not any(taint.kind == "exception" for taint in value.taint):
            continue
        reading = _Reading(frame)
        for place in sorted(set(reading.tries(value, _DEPTH))):
            well, ill = reading.answers(value, None, _DEPTH), reading.answers(value, place, _DEPTH)
            if well == _TRUE and False in ill:
                return Verdict("success", place)
            if well == _FALSE and True in ill:
                return Verdict("failure", place)
    return None


class _Reading:
    """Reads values, through the lists that hold them."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def tries(self, value: Value, depth: int) -> Iterator[Place]:
        """The try statements on which a value depends."""
        place = _raised(value)
        if place is not None:
            yield place
        elif depth > 0:
            for part in self._parts(value):
                yield from self.tries(part, depth - 1)

    def answers(self, value: Value, raised: Place | None, depth: int) -> Answers:
        """What a value may be as a condition, where an exception was caught in one try statement only, or in none."""
        if depth == 0:
            return _UNKNOWN
        if value.tag == "const":
            return frozenset({bool(value.data[0])})
        if value.tag == "ite":
            return self._choice(value, raised, depth)
        if value.tag == "expr":
            return self._expression(value, raised, depth)
        if _is_exception(value):
            return _TRUE
        if (place := _raised(value)) is not None:
            return frozenset({place == raised})
        if _label(value)[-1:] == ("point",):  # how far the body came
            return _TRUE | _FALSE
        items = list(self._parts(value))
        return self.answers(items[0], raised, depth - 1) if len(items) == 1 else _UNKNOWN

    def _choice(self, value: Value, raised: Place | None, depth: int) -> Answers:
        condition, then, orelse = value.data
        asked = self.answers(condition, raised, depth - 1)
        if len(asked) == 1:
            return self.answers(then if True in asked else orelse, raised, depth - 1)
        both = [self.answers(part, raised, depth - 1) for part in (then, orelse)]
        return both[0] | both[1] if all(both) else _UNKNOWN

    def _expression(self, value: Value, raised: Place | None, depth: int) -> Answers:
        operator, operands = value.data
        name = str(operator).removeprefix("call:").rpartition(".")[2]
        if operator == "not":
            return frozenset(not answer for answer in self.answers(operands[0], raised, depth - 1))
        if operator in ("is", "is not") and operands[1].tag == "const" and operands[1].data[0] is None:
            given = self._is_none(operands[0], raised, depth - 1)
            return given if operator == "is" else frozenset(not answer for answer in given)
        if name in ("ones", "zeros") and str(operator).startswith("call:"):
            return _TRUE if name == "ones" else _FALSE
        if name == "full" and len(operands) > 1:
            return self.answers(operands[1], raised, depth - 1)
        if operands and name in _WRAPS | _KEEPS:
            return self.answers(operands[0], raised, depth - 1)
        return _UNKNOWN

    def _is_none(self, value: Value, raised: Place | None, depth: int) -> Answers:
        if depth > 0 and value.tag == "ite":
            condition, then, orelse = value.data
            asked = self.answers(condition, raised, depth - 1)
            if len(asked) == 1:
                return self._is_none(then if True in asked else orelse, raised, depth - 1)
        if value.tag == "const":
            return frozenset({value.data[0] is None})
        return _FALSE if _is_exception(value) or value.tag == "expr" else _UNKNOWN

    def _parts(self, value: Value) -> Iterator[Value]:
        """What a value is made of, with the items of a list."""
        if value.tag == "expr":
            yield from value.data[1]
        elif value.tag in ("ite", "tuple"):
            yield from value.data
        else:
            held = _list_of(value)
            if held is not None:
                yield from self.frame.live.heap.fields(held).values()


def _label(value: Value) -> tuple[Hashable, ...]:
    label = value.data[0] if value.tag == "sym" and value.data else None
    return label if isinstance(label, tuple) else ()


def _raised(value: Value) -> Place | None:
    """The try statement of a condition that says whether an exception was caught."""
    label = _label(value)
    return label[1] if label[:1] == ("raised",) and len(label) > 1 else None  # type: ignore[return-value]


def _is_exception(value: Value) -> bool:
    return _label(value)[:1] == ("exception",)


def _list_of(value: Value) -> tuple[Hashable, ...] | None:
    """The list whose contents a value is."""
    label = _label(value)
    held = (
        value.data[0]
        if value.tag == "obj"
        else label[1]
        if label[:1] == ("contents",) and len(label) > 1
        else None
    )
    return held if isinstance(held, tuple) and held[:1] and held[0] in _CONTAINERS else None
