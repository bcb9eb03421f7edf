"""Iterators and lengths: how many items there are, and which rank comes to the end of them first.

Terminology: an iterator *runs dry* where ``next`` has nothing to give; an *endless* generator never does. Where ranks
may have another number of items, ``next`` is a branch: on one side it raises, or gives the default.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..source.walking import children
from ..traces.nodes import Branch, Jump, Loop, Tree, Yielded, every_node
from ..values.shares import is_even_share
from ..values.value import (
    NO_TAINT,
    NONE,
    Taints,
    Value,
    choice,
    constant,
    expression,
    negate,
    retaint,
    symbol,
    union,
)
from .containers import REST, data_of, element_of, fields_of
from .contents import asked, condition_of, is_container, with_length
from .datasets import length_taint
from .expressions import text_of
from .frame import Frame
from .kinds import DRAWN
from .lazily import cut_short, ends_by_test
from .lengths import trip_taint
from .protocols import special
from .selection import counted
from .summed import summed_up

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo

Maker = Callable[[Frame, str, list[Value], dict[str, Value], ast.AST], Value]
_NO_END = frozenset({"call:itertools.count", "call:itertools.cycle"})
_WITH_ANY = frozenset({"call:itertools.chain"})
_AS_LONG = frozenset({"zip", "enumerate", "iter", "map"})
_RESIZING = frozenset({"append", "appendleft", "extend", "insert", "pop", "popleft", "remove", "clear"})
DRY = "dry"  # of the symbol that asks whether an iterator has come to its end
FORM = "next"  # of the branch that an iterator's end makes


def next_item(frame: Frame, args: list[Value], node: ast.AST) -> Value:
    """``next(iterator)``, which raises on the ranks whose iterator has run dry, or gives the default there."""
    own = special(frame, args[0], "__next__", [], node)
    if own is not None:
        return own
    source = with_length(frame, args[0])
    why = runs_dry(frame, source, node)
    if source.tag == "generator":
        source = symbol(("consumed", frame.place(node)), data_of(source.taint))
    item = element_of(frame, source, node)
    if source.trip:
        item = retaint(item, union(item.taint, source.trip), item.trip)
    if not why or frame.state is None:
        return item
    dry = symbol((DRY, frame.place(node), args[0].key), why)
    if len(args) > 1:
        return choice(dry, args[1], item)
    begun_anew = any("StopIteration" in name for name, _ in frame.handled)
    kept = any(t.kind == "exception" for t in why)  # the end of a generator under @rank_local
    if not begun_anew and (kept or somebody_catches(frame, "StopIteration")):
        raise_where(frame, dry, node, "StopIteration")
    return item


def stops_early(frame: Frame, name: str, made: Value, node: ast.AST) -> None:
    """``any`` leaves the loop of a generator expression at the first true item, ``all`` at the first false one.

    ``next`` leaves it at the first item that its tests let through.
    """
    given = node.args if isinstance(node, ast.Call) else []
    if not given or not isinstance(given[0], ast.GeneratorExp):
        return
    loop = frame.out[-1] if frame.out else None
    place = frame.place(given[0])
    if not isinstance(loop, Loop) or loop.place != place or made.tag != "obj":
        return
    if name == "next":
        if made.data[0] not in frame.machine.made_by_rule:
            return
        met = frame.machine.made_by_rule[made.data[0]][1][2]
    else:
        item = condition_of(frame, fields_of(frame, made).get(REST, NONE), node)
        met = negate(item) if name == "all" else item
    text = text_of(node)
    loop.body.append(Branch(place, met, [Jump(place, "break", text)], [], "if", text))


def somebody_catches(frame: Frame, name: str) -> bool:
    """Whether a handler around counts on an exception: others may take it for one that never comes."""
    here: Frame | None = frame
    while here is not None:
        if any(watch.catches(name) for watch in here.watchers):
            return True
        here = here.caller
    return False


def raise_where(frame: Frame, condition: Value, node: ast.AST, name: str, form: str = FORM) -> None:
    """An exception of a built-in class, raised where a condition holds."""
    from .statements import branch

    text = text_of(node)

    def stop() -> None:
        frame.record_raise(name)
        frame.out.append(Jump(frame.place(node), "raise", text, name, NONE))
        frame.state = None

    branch(frame, node, condition, stop, lambda: None, form, text)


def runs_dry(frame: Frame, source: Value, node: ast.AST) -> Taints:
    """Why ranks may have another number of items in an iterator."""
    if source.tag == "generator":
        return _yields_vary(frame, source, node)
    if source.tag == "expr" and source.trip is None and source.data[0] in ("iter", "enumerate", "reversed"):
        return union(*(runs_dry(frame, operand, node) for operand in source.data[1]))
    return trip_taint(source)


def _yields_vary(frame: Frame, generator: Value, node: ast.AST) -> Taints:
    """Run a project generator, and tell why it may yield more often on one rank than on another."""
    from .loops import consume

    with frame.collecting() as nodes:
        consume(frame, node, generator, lambda _value: None, text_of(node))
    frame.out.extend(nodes)
    return NO_TAINT if endless(generator.data[0]) else _around_yields(nodes)


def _around_yields(nodes: Tree) -> Taints:
    """Why what stands around the yields of a tree differs: rounds of loops, and arms of which one alone yields."""
    found = NO_TAINT
    for node in nodes:
        inside = [child for child in node.subtrees() if _holds_yield(child)]
        if isinstance(node, Loop) and inside:
            found = union(found, node.trip)
        elif isinstance(node, Branch) and len(inside) == 1:
            found = union(found, node.condition.taint)
        found = union(found, *(_around_yields(child) for child in inside))
    return found


def _holds_yield(nodes: Tree) -> bool:
    return any(isinstance(node, Yielded) for node in every_node(nodes))


def endless(info: FunctionInfo) -> bool:
    """Whether a generator ends on no rank: it loops without a condition, and nothing leaves the loop."""
    return any(
        isinstance(statement, ast.While)
        and isinstance(statement.test, ast.Constant)
        and bool(statement.test.value)
        and not any(_leaves(inner) for inner in statement.body)
        for statement in info.body
    )


def _leaves(node: ast.AST, *, inner: bool = False) -> bool:
    """Whether a statement of a loop may leave it; the breaks of inner loops do not."""
    if isinstance(node, (ast.Return, ast.Raise)) or (isinstance(node, ast.Break) and not inner):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
        return False
    inner = inner or isinstance(node, (ast.For, ast.AsyncFor, ast.While))
    return any(_leaves(child, inner=inner) for child in children(node))


def never_ends(value: Value) -> bool:
    """Whether an iterator has an end on no rank."""
    if value.tag == "generator":
        return endless(value.data[0])
    if value.tag != "expr":
        return False
    name, operands = value.data
    if name == "call:itertools.repeat":
        return len(operands) == 1
    if name in _WITH_ANY:
        return any(never_ends(operand) for operand in operands)
    return name in _NO_END or (name in _AS_LONG and bool(operands) and all(map(never_ends, operands)))


def islice(frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value:
    """``itertools.islice(items, n)``: as many as asked for, where there are as many."""
    drawn = cut_short(frame, qualname, args, node)
    if drawn is not None:
        return drawn
    value = expression(f"call:{qualname}", args)
    if not args:
        return value
    counted = union(*(bound.taint for bound in args[1:]))
    trip = NO_TAINT if never_ends(args[0]) else trip_taint(with_length(frame, args[0]))
    return retaint(value, value.taint, union(counted, trip))


def endless_iterator(
    frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """``itertools.cycle(items)`` and the like: no rank comes to an end of it; ``repeat`` may be given a number."""
    given = [*args, *kwargs.values()]
    value = expression(f"call:{qualname}", given)
    times = given[1:2] if qualname.endswith("repeat") else []
    return retaint(value, value.taint, union(NO_TAINT, *(number.taint for number in times)))


ITERTOOLS: dict[str, Maker] = {
    "itertools.islice": islice,
    "itertools.takewhile": ends_by_test,
    **dict.fromkeys(("itertools.count", "itertools.cycle", "itertools.repeat"), endless_iterator),
}


def range_trip(frame: Frame, args: list[Value], taint: Taints, node: ast.AST) -> Taints:
    """Why a range may have another length."""
    if not taint or not 0 < len(args) <= 3:
        return taint or counted(frame, args, node) or summed_up(frame, args)
    start, stop, step = [NONE, *args, NONE] if len(args) == 1 else [*args, NONE][:3]
    return NO_TAINT if is_even_share(start, stop, step) else taint


def resized(frame: Frame, receiver: Value, method: str) -> None:
    """Something of unknown type gets or loses an item where the rank decides: its length differs from here on."""
    if method not in _RESIZING or receiver.tag != "sym" or frame.state is None:
        return
    why = frozenset(t for t in frame.path_taint() if t.kind in ("rank", "group-rank"))
    if why:
        changed = retaint(receiver, receiver.taint, union(receiver.trip or NO_TAINT, why))
        frame.live.replace_everywhere(receiver, changed)


def length_of(frame: Frame, value: Value) -> Value:
    """``len(value)``."""
    if value.tag == "tuple":
        return constant(len(value.data))
    if is_container(frame, value):
        return asked(frame, value, "length")
    result = expression("len", (value,))
    if value.tag == "ite":
        from .lengths import trip_taint

        parts = [part.trip if part.trip is not None else trip_taint(part) for part in value.data[1:]]
        return retaint(result, union(value.data[0].taint, *parts))
    if value.trip is not None:
        return retaint(result, value.trip)
    of_library = length_taint(value)
    if of_library is not None:
        return retaint(result, of_library)
    if value.tag == "sym" and isinstance(value.data[0], tuple) and value.data[0][0] in DRAWN:
        return retaint(result, frozenset(t for t in result.taint if t.kind != "random"))
    return result


def same_length(frame: Frame, name: str, args: list[Value], node: ast.AST) -> Value:
    """``list``, ``zip``, ``enumerate`` and the like: as many items as they get."""
    from .containers import copy_container

    if name in ("list", "tuple", "sorted") and args:
        copied = copy_container(frame, args[0], name, node)
        if copied is not None:
            return copied
    sources = [with_length(frame, arg) for arg in (args[1:] if name == "map" else args)]
    value = expression(name, args)
    taint = value.taint
    if name == "sorted":
        taint = frozenset(t for t in taint if t.kind != "order")
    trips = [s.trip for s in sources if s.trip is not None]
    trip = union(*trips) if trips else None
    if name == "sorted":
        lengths = settled(frame, taint if trip is None else trip)
        trip = trip if lengths == taint else lengths
    return retaint(value, taint, trip)


def settled(frame: Frame, trip: Taints) -> Taints:
    """Why what was sorted has another length: entries of a folder are as many everywhere, unless it is written to.

    Who sorts a listing means all processes to see the same one.
    """
    listings = frame.machine.listings
    return frozenset(t._replace(certainty="possible") if t.place in listings else t for t in trip)
