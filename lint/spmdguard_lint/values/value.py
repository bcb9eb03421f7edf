"""Symbolic values: what an expression denotes, and why it may differ between ranks.

Terminology: a value is a tag with data. Its *taint* is the set of reasons why it may be rank-varying; an
empty taint means rank-invariant. Its *trip* taint says the same of its length (how often a loop over it
runs), kept apart because every rank's loader holds other data but as many batches. Its *key* identifies
it: two conditions with the same key decide alike.

Invariant: values are immutable and taint(value) contains the taint of everything it was computed from.
Expressions are bounded: above ``MAX_SIZE`` nodes they collapse to an opaque symbol with the same taint.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Hashable, Iterable, Iterator
from itertools import count
from typing import Any, NamedTuple

MAX_SIZE = 40
SET_LATER = "set later"  # heads the symbol that says whether a variable still is what it was at first
MAX_TAINTS = 6


class Place(NamedTuple):
    """Where something stands: file as displayed, 1-based rows, 0-based byte columns as in ``ast``."""

    filename: str
    row: int
    column: int
    end_row: int
    end_column: int


def place_of(filename: str, node: ast.AST) -> Place:
    """Where a node of a file stands; what has no place is at its beginning."""
    row: int = getattr(node, "lineno", 1)
    column: int = getattr(node, "col_offset", 0)
    end_row = getattr(node, "end_lineno", None) or row
    return Place(filename, row, column, end_row, getattr(node, "end_col_offset", None) or column)


def is_at(node: ast.AST, place: Place) -> bool:
    """Whether a node of the place's file begins there."""
    return (getattr(node, "lineno", None), getattr(node, "col_offset", None)) == (place.row, place.column)


class Taint(NamedTuple):
    """One reason for rank variance: its kind (see ``facts.VARYING_KINDS``), where it arose, and in which words."""

    kind: str
    place: Place
    text: str
    certainty: str = "definite"


OF_MEMORY = "memory that runs out on one rank only"  # the text of a taint of kind "exception"
OF_A_SET = "iteration order of a set"  # the text of a taint of kind "order" that sorting takes away
OF_A_STAGE = "what this stage of the model holds"  # the text of a taint of kind "data"
Taints = frozenset[Taint]
NO_TAINT: Taints = frozenset()


_KEYS: dict[Hashable, int] = {}
_numbers = count(1)
_runs: list[frozenset[Hashable]] = []


@contextlib.contextmanager
def keys_of_a_run() -> Iterator[None]:
    """Forget at the end the keys that were made inside: they hold the program that was read.

    No number is given twice, so values that outlive the block are equal to none that is made after it. Where blocks
    overlap, the last to end forgets.
    """
    _runs.append(frozenset(_KEYS) if not _runs else _runs[-1])
    try:
        yield
    finally:
        known = _runs.pop()
        if not _runs:
            for key in [key for key in _KEYS if key not in known]:
                del _KEYS[key]


def intern(key: Hashable) -> int:
    """A number for a structural key; equal keys have equal numbers, so that nested keys stay small."""
    if type(key) is int:
        return key
    known = _KEYS.get(key)
    if known is None:
        known = _KEYS[key] = next(_numbers)
    return known


class Value:
    """An immutable symbolic value."""

    __slots__ = ("certain", "data", "key", "size", "tag", "taint", "trip")

    def __init__(
        self,
        tag: str,
        data: tuple[Any, ...] = (),
        taint: Taints = NO_TAINT,
        trip: Taints | None = None,
        key: Hashable = None,
        size: int = 1,
    ) -> None:
        self.tag = tag
        self.data = data
        self.taint = taint
        self.trip = trip
        self.size = size
        self.key = intern((tag, *data) if key is None else key)

    def __repr__(self) -> str:
        mark = "~" if self.taint else ""
        return f"{mark}{self.tag}{self.data!r}"


def union(*taints: Taints) -> Taints:
    """Join taint sets, keeping them small."""
    result = NO_TAINT
    for taint in taints:
        if taint and taint is not result:
            result = result | taint if result else taint
    if len(result) > MAX_TAINTS:
        result = frozenset(sorted(result, key=taint_order)[:MAX_TAINTS])
    return result


def without_order(taint: Taints) -> Taints:
    """The reasons that are not about the order of items."""
    return (
        taint
        if not any(t.kind == "order" for t in taint)
        else frozenset(t for t in taint if t.kind != "order")
    )


def doubted(taint: Taints, *kinds: str) -> Taints:
    """The same reasons, those of some kinds (of any, where none is named) as no more than possible."""
    return frozenset(t._replace(certainty="possible") if not kinds or t.kind in kinds else t for t in taint)


_KIND_ORDER = {"rank": 0, "group-rank": 1, "time": 2, "random": 3, "filesystem": 4, "signal": 5, "order": 6}


def taint_order(taint: Taint) -> tuple[int, Place, str]:
    """Sort key: strongest kind first, then by place."""
    return (_KIND_ORDER.get(taint.kind, 9), taint.place, taint.text)


class Member(str):
    """A member of an enum, ``module.Role.CHIEF``: a constant that equals itself alone."""

    __slots__ = ("name", "owner")
    name: str
    owner: str

    def __new__(cls, owner: str, name: str) -> Member:
        new = super().__new__(cls, f"<{owner}.{name}>")
        new.owner = owner
        new.name = name
        return new


def constant(value: object) -> Value:
    """A Python constant."""
    return Value("const", (value,), NO_TAINT, NO_TAINT, ("const", type(value).__name__, repr(value)))


NONE = constant(None)
TRUE = constant(True)
FALSE = constant(False)


def symbol(name: Hashable, taint: Taints = NO_TAINT, trip: Taints | None = None) -> Value:
    """An opaque value known only by where it came from."""
    return Value("sym", (name,), taint, trip, ("sym", name))


def external(qualname: str) -> Value:
    """An object outside the project, by qualified name."""
    return Value("ext", (qualname,))


def is_const(value: Value) -> bool:
    return value.tag == "const"


def expression(operator: str, args: Iterable[Value], *, extra: Taints = NO_TAINT) -> Value:
    """A pure expression over values, folded where its operands are constant."""
    operands = tuple(args)
    taint, size = extra, 1
    for operand in operands:
        size += operand.size
        if operand.taint and operand.taint is not taint:
            taint = union(taint, operand.taint)
    key: Hashable = ("expr", operator, *[a.key for a in operands])
    if size > MAX_SIZE and (operator in _LOGIC or operator in _ARITHMETIC):
        operands = tuple(
            _opaque(operand) if operator in _LOGIC else _bare_number(operand) for operand in operands
        )
        size = 1 + sum(a.size for a in operands)
    if size > MAX_SIZE:
        return symbol((_COMPUTED, operator, intern(key)), taint)
    return Value("expr", (operator, operands), taint, None, key, size)


def operator_of(value: Value) -> str:
    """What an expression does, also where its operands were too many to be kept; "" of other values."""
    if value.tag == "expr":
        return str(value.data[0])
    label = value.data[0] if value.tag == "sym" else None
    return str(label[1]) if isinstance(label, tuple) and label[:1] == (_COMPUTED,) else ""


def called(operator: object) -> str:
    """The last part of the name of a call (``cat`` of ``call:torch.cat``); "" for other operators."""
    text = str(operator)
    return text.rpartition(".")[2].removeprefix("call:") if text.startswith("call:") else ""


_COMPUTED = "computed"
_MADE = "made-by"
_ONE_OF = "one of"
_THINGS = frozenset({"func", "class", "ext", "extobj", "module", "partial", "bound", "obj", "tuple"})
_LOGIC = frozenset({"and", "or", "not"})
_ARITHMETIC = frozenset({"+", "-", "*", "//", "%", "neg"})
_RANKS = frozenset({"rank", "local_rank", "node_rank", "group_rank"})


def _opaque(value: Value, maker: str | None = None) -> Value:
    """What no rank stands in, as a symbol of the same key that may tell its maker: what the ranks decide is kept."""
    if value.size == 1 or (value.taint and _holds_rank(value)):
        return value
    label: Hashable = ("part", value.key)
    return Value("sym", ((_MADE, maker, label) if maker else label,), value.taint, value.trip, value.key)


def _bare_number(value: Value) -> Value:
    """A number as it is computed, its parts as symbols of the same keys: ``n - n % k``, however long ``n`` is."""
    if value.tag != "expr" or value.data[0] not in _ARITHMETIC:
        return _opaque(value)
    operator, operands = value.data
    parts = tuple(_bare_number(operand) for operand in operands)
    size = 1 + sum(part.size for part in parts)
    return Value("expr", (operator, parts), value.taint, value.trip, value.key, size)


def _holds_rank(value: Value) -> bool:
    stack = [value]
    while stack:
        part = stack.pop()
        if part.tag in _RANKS:
            return True
        if part.tag == "expr":
            stack.extend(part.data[1])
        elif part.tag in ("ite", "tuple"):
            stack.extend(part.data)
    return False


def told(contents: Value, root: int, own: Value) -> Value:
    """What all ranks have after a broadcast of what rank ``root`` had: there, it is the value ``own``."""
    at_root, elsewhere = (expression(sign, (Value("rank"), constant(root))).key for sign in ("==", "!="))
    mark = Told(at_root, elsewhere, None)
    return symbol((*contents.data[0], mark._replace(own=mark.of_root(own))), contents.taint, contents.trip)


class Told(NamedTuple):
    """Keys of the conditions that hold on the root, and elsewhere; key of what the root had."""

    at_root: Hashable
    elsewhere: Hashable
    own: Hashable

    def of_root(self, value: Value) -> Hashable:
        """The key of a value as the root has it."""
        while value.tag == "ite":
            condition, then, orelse = value.data
            if condition.key not in (self.at_root, self.elsewhere):
                break
            value = then if condition.key == self.at_root else orelse
        return value.key


def _as_told(condition: Value, then: Value, orelse: Value) -> Value | None:
    """The root keeps its own value, the others take what it told them: the same everywhere."""
    if condition.tag == "expr" and condition.data[0] == "not":
        return _as_told(condition.data[1][0], orelse, then)
    for given, own, at_given in ((then, orelse, "elsewhere"), (orelse, then, "at_root")):
        label = given.data[0] if given.tag == "sym" else None
        mark = label[-1] if isinstance(label, tuple) and label else None
        if (
            isinstance(mark, Told)
            and condition.key == getattr(mark, at_given)
            and mark.of_root(own) == mark.own
        ):
            return given
    return None


def _one_of_equals(condition: Value, then: Value, orelse: Value) -> Value | None:
    """``a if a == b else b`` is ``b``; None for other choices."""
    if condition.tag != "expr" or condition.data[0] not in ("==", "!="):
        return None
    chosen, kept = (then, orelse) if condition.data[0] == "==" else (orelse, then)
    operands = {operand.key for operand in condition.data[1]}
    return kept if then.key != orelse.key and operands == {chosen.key, kept.key} else None


def choice(condition: Value, then: Value, orelse: Value) -> Value:
    """The value that is ``then`` where the condition holds and ``orelse`` elsewhere."""
    if condition.tag == "const":
        return then if condition.data[0] else orelse
    equal = _one_of_equals(condition, then, orelse)
    if equal is not None:
        return equal
    if condition.taint:
        same = _as_told(condition, then, orelse)
        if same is not None:
            return same
    if then is orelse or then.key == orelse.key:
        if then.taint == orelse.taint and then.trip == orelse.trip:
            return then
        return retaint(then, union(then.taint, orelse.taint), join_trip(then.trip, orelse.trip))
    taint = union(condition.taint, then.taint, orelse.taint)
    trip = join_trip(then.trip, orelse.trip)
    if condition.taint and then.trip is not None and orelse.trip is not None:
        trip = union(trip or NO_TAINT, condition.taint)
    size = 1 + condition.size + then.size + orelse.size
    key: Hashable = ("ite", condition.key, then.key, orelse.key)
    if size > MAX_SIZE and condition.taint and _holds_rank(condition):
        thinner = _thin(then), _thin(orelse)
        if 1 + condition.size + thinner[0].size + thinner[1].size <= MAX_SIZE:
            return choice(condition, *thinner)
    if size > MAX_SIZE and condition.size > 1:
        return choice(Value("sym", (condition.key,), condition.taint), then, orelse)
    width = _width(then) if size > MAX_SIZE else None
    if width is not None and width == _width(orelse):
        items = tuple(choice(condition, item_of(then, i), item_of(orelse, i)) for i in range(width))
        return Value("tuple", items, taint, trip, key, 1 + sum(item.size for item in items))
    if size > MAX_SIZE:
        # as of the choice itself, nothing is known of its length: its reasons are none to have another number of items
        word = _ONE_OF if _is_there(then) and _is_there(orelse) else "either"
        label = one_of_made(then, orelse, (word, intern(key)))
        return symbol(label, taint, NO_TAINT if trip is None else trip)
    return Value("ite", (condition, then, orelse), taint, trip, key, size)


def _is_there(value: Value) -> bool:
    """Whether nothing tells that a value may be None on some ranks."""
    if value.tag == "ite":
        return _is_there(value.data[1]) and _is_there(value.data[2])
    if value.tag in ("const", "sym"):
        label = value.data[0]
        perhaps = label is None or (isinstance(label, tuple) and label[:1] == ("param-none",))
        return is_one_of(value) or not (value.taint or perhaps)
    made = operator_of(value)
    return value.tag in _THINGS or made in _ARITHMETIC or made == "/" or not value.taint


def is_one_of(value: Value) -> bool:
    """Whether a value is one of several, too large to be kept, none of which is None as far as is known."""
    label = value.data[0] if value.tag == "sym" else None
    if isinstance(label, tuple) and label[:1] == (_MADE,):
        label = label[2]
    return isinstance(label, tuple) and label[:1] == (_ONE_OF,)


def _thin(value: Value) -> Value:
    """One that may be chosen, its parts as symbols of the same keys: which rank has it matters more than what it is."""
    if value.tag == "ite":
        data = value.data[0], _thin(value.data[1]), _thin(value.data[2])
        size = 1 + sum(part.size for part in data)
        return Value("ite", data, value.taint, value.trip, value.key, size)
    return _opaque(value, made_by(value)) if value.tag == "expr" else value


def made_by(value: Value) -> str | None:
    """The call that has made a value, or each of those that it may be but for None; "" where there is no such call."""
    if value.tag == "ite":
        return _common(made_by(value.data[1]), made_by(value.data[2]))
    if value.key == NONE.key:
        return None
    label = value.data[0] if value.tag == "sym" else None
    if isinstance(label, tuple) and label[:1] == (_MADE,):
        return str(label[1])
    operator = operator_of(value)
    return operator if operator.startswith("call:") else ""


def _common(first: str | None, second: str | None) -> str | None:
    return first if second is None or first == second else second if first is None else ""


def one_of_made(first: Value, second: Value, label: Hashable) -> Hashable:
    """The label of a symbol for one of two values: it tells by which call each of them was made."""
    maker = _common(made_by(first), made_by(second))
    return (_MADE, maker, label) if maker else label


def _width(value: Value) -> int | None:
    """How many items a tuple has, or every one of those that a value may be; None where it may be anything else."""
    if value.tag == "tuple":
        return len(value.data)
    if value.tag != "ite":
        return None
    width = _width(value.data[1])
    return width if width == _width(value.data[2]) else None


def item_of(value: Value, position: int) -> Value:
    """The item of a tuple, or of whichever of several it is."""
    if value.tag == "ite":
        condition, then, orelse = value.data
        return choice(condition, item_of(then, position), item_of(orelse, position))
    item: Value = value.data[position]
    return item


def join_trip(first: Taints | None, second: Taints | None) -> Taints | None:
    """Trip taint of a value that may be either of two."""
    if first is None or second is None:
        return first or second or None
    return union(first, second)


def retaint(value: Value, taint: Taints, trip: Taints | None = None) -> Value:
    """The same value with another taint."""
    return Value(value.tag, value.data, taint, trip, value.key, value.size)


def negate(condition: Value) -> Value:
    """The logical negation, without double negations."""
    if condition.tag == "const":
        return FALSE if condition.data[0] else TRUE
    if condition.tag == "expr" and condition.data[0] == "not":
        inner: Value = condition.data[1][0]
        return inner
    return expression("not", (condition,))


def parts_of(value: Value) -> Iterator[Value]:
    """A value and all that it is made of, each once."""
    stack: list[object] = [value]
    seen: set[int] = set()
    while stack:
        part = stack.pop()
        if isinstance(part, tuple):
            stack += part
        elif isinstance(part, Value) and part.key not in seen:
            seen.add(part.key)
            yield part
            stack += part.data


def is_split(value: Value, limit: int = 5) -> bool:
    """Whether a value is one of a few, each of which can be looked at on its own."""
    return value.tag == "ite" and len(alternatives(value, limit + 1)) <= limit


def alternatives(value: Value, limit: int = 6) -> list[Value]:
    """The leaves of nested choices: every value that this one may be."""
    found: list[Value] = []
    stack = [value]
    while stack and len(found) < limit:
        current = stack.pop()
        if current.tag == "ite":
            stack.append(current.data[2])
            stack.append(current.data[1])
        else:
            found.append(current)
    return found
