"""Functions whose results are kept by their arguments: where a result is kept already, the body does not run.

A key of this rank's own data has been seen before on one rank and not on another. A key that the rank alone decides is
the same at each call, so that all ranks run the body at the first one. Where the key is the same at each call, the heap
tells whether the result is kept already: for sure, under a condition, or not at all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from ..names.shown import compared_with_others
from ..source.walking import walk
from ..traces.nodes import Branch, Op, Tree, every_node
from ..values.evaluate import rank_dependent
from ..values.value import (
    FALSE,
    NO_TAINT,
    TRUE,
    Taint,
    Taints,
    Value,
    is_const,
    parts_of,
    place_of,
    retaint,
    symbol,
    union,
)
from .frame import Frame
from .selection import is_given
from .state import KEPT, NOT_KEPT, join
from .summed import is_length

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo

CACHES = frozenset(
    {
        "functools.cache",
        "functools.lru_cache",
        "cachetools.cached",
        "cachetools.func.lru_cache",
        "cachetools.func.ttl_cache",
        "joblib.Memory.cache",
        "async_lru.alru_cache",
        "methodtools.lru_cache",
        "torch._dynamo.utils.lru_cache",
    }
)
TIMED = frozenset({"cachetools.cached", "cachetools.func.ttl_cache"})  # may forget what they keep
FORM = "cache"
_FIXED = frozenset(
    {"const", "ext", "func", "class", "module", "obj", "extobj", "rank", "world", "local_rank", "node_rank"}
)
_OWN = ("rank", "group-rank", "data", "random", "time", "filesystem", "environment")


def communicates(frame: Frame, function: Value) -> bool:
    """Whether ranks may meet in a function."""
    while function.tag == "wrapped":
        function = function.data[1]
    return function.tag == "func" and frame.machine.reach.reaches(function.data[0])


def call_cached(
    frame: Frame,
    function: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    spread: bool,
    *,
    timed: bool = False,
) -> Value:
    """A call of a function with a cache: a rank whose key is known skips what the function does."""
    from .calls import call_value
    from .contents import whole
    from .expressions import text_of

    keys = [whole(frame, value) for value in (*args, *kwargs.values())]

    def call() -> Value:
        with frame.collecting() as nodes:
            result = call_value(frame, function, args, kwargs, node, spread=spread)
        why = NO_TAINT
        if _meets(nodes):
            why = union(NO_TAINT, *(own_key(key) for key in keys))
            if not why and any(map(_counts_data, keys)):
                why = _shown(frame, function)
        if why:
            condition = symbol(("kept", frame.place(node), *(key.key for key in keys)), why)
            frame.out.append(Branch(frame.place(node), condition, [], nodes, FORM, text_of(node)))
        else:
            if frame.caller is not None:
                frame.machine.decided.add(frame.place(node))
            frame.out.extend(nodes)
        return result

    cell = None if spread or timed else _cell(function, [*kwargs], keys)
    return call() if cell is None else kept(frame, cell, call, node)


def _cell(function: Value, names: list[str], keys: list[Value]) -> Hashable | None:
    """The heap object for a kept result; None where a key may be another one at each call."""
    while function.tag == "wrapped":
        function = function.data[1]
    if function.tag != "func" or function.data[1] is not None or not all(map(_is_fixed, keys)):
        return None
    info, _, receiver = function.data
    return cell_of(info, receiver, *names, *(key.key for key in keys))


def cell_of(info: object, receiver: Value | None, *parts: Hashable) -> Hashable:
    """The heap object for what a function of a receiver keeps."""
    return (KEPT, id(info), None if receiver is None else receiver.key, *parts)


def _is_fixed(key: Value) -> bool:
    """Whether a key is the same wherever it stands in a run."""
    if key.tag == "expr":
        return all(map(_is_fixed, key.data[1]))
    if key.tag == "tuple":
        return all(map(_is_fixed, key.data))
    label = key.data[0] if key.tag == "sym" else None
    return key.tag in _FIXED or (isinstance(label, tuple) and label[:1] == ("param",))


def kept(frame: Frame, cell: Hashable, call: Callable[[], Value], node: ast.AST) -> Value:
    """The result of a call that is made once: kept for sure, on some ways that lead here, or on none."""
    from .expressions import text_of

    known = frame.live.field(cell, "value")
    before = frame.live.field(cell, "result")
    if known is None or before is None or known.key == FALSE.key:
        with frame.collecting() as nodes:
            result = call()
        frame.out.extend(nodes)
    elif is_const(known):
        return before
    else:
        made = retaint(known, NO_TAINT)  # who has made the call is judged where it was made
        state = frame.live.copy()
        with frame.collecting() as nodes:
            result = call()  # the same one, whenever it was made
        frame.state = join(state, frame.state, made)
        if nodes:
            frame.out.append(Branch(frame.place(node), made, [], nodes, FORM, text_of(node)))
    if frame.state is not None and (known is not None or _meets(nodes)):
        frame.machine.calls.cells.add(cell)
        frame.state.heap[cell] = {"value": TRUE, "result": result}
    return result


def keeps_nothing(frame: Frame, made: Value) -> None:
    """A new object has kept no results, whatever another one of the same place has."""
    for cell in frame.machine.calls.cells:
        if isinstance(cell, tuple) and cell[2] == made.key and cell in frame.live.heap:
            frame.live.heap[cell] = NOT_KEPT


def own_key(key: Value) -> Taints:
    """Why a key may be new on one rank alone."""
    from .containers import data_of

    if rank_dependent(key):
        return NO_TAINT
    return data_of(frozenset(t for t in key.taint if t.kind in _OWN))


def _counts_data(key: Value) -> bool:
    """Whether a key is computed from how many items there are in data, which may be other ones on each rank."""
    return is_given(key) and any(map(is_length, parts_of(key)))


def _shown(frame: Frame, function: Value) -> Taints:
    """Why keys may differ that a function compares with those of other ranks."""
    while function.tag == "wrapped":
        function = function.data[1]
    info: FunctionInfo | None = function.data[0] if function.tag == "func" else None
    return NO_TAINT if info is None else shown_to_others(frame, info, _parameters(info.node))


def _parameters(node: ast.AST) -> set[str]:
    given = getattr(node, "args", None)
    return (
        {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)} - {"self", "cls"}
        if given
        else set()
    )


def shown_to_others(frame: Frame, info: FunctionInfo, names: set[str]) -> Taints:
    """Why what a function keeps by some of its names is kept on one rank alone: it compares them with other ranks'."""
    from .expressions import text_of

    call = compared_with_others(info.node, names)
    if call is None:
        return NO_TAINT
    place = place_of(info.module.filename, call)
    return frozenset({Taint("data", place, f"what `{text_of(call)}` compares", "likely")})


def new_key(frame: Frame, key: Value, test: ast.Compare) -> Taints | None:
    """Why a key may be new on one rank alone, where the function at hand puts something under it; else None."""
    counts = _counts_data(key)
    if not (key.taint or counts) or not fills(frame, test.comparators[0], test.left):
        return None
    why = own_key(key)
    if why or not counts or frame.function is None:
        return why
    names = {part.id for part in walk(test.left) if isinstance(part, ast.Name)}
    return shown_to_others(frame, frame.function, names - {"self", "cls"})


def fills(frame: Frame, mapping: ast.expr, key: ast.expr) -> bool:
    """Whether the function at hand itself puts something under a key into a mapping: it keeps results there."""
    from .expressions import text_of

    if frame.function is None:
        return False
    return any(
        isinstance(target, ast.Subscript)
        and text_of(target.slice) == text_of(key)
        and text_of(target.value) == text_of(mapping)
        for node in walk(frame.function.node)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def _meets(nodes: Tree) -> bool:
    return any(isinstance(node, Op) for node in every_node(nodes))
