"""Functions whose results are kept by their arguments: where a result is kept already, the body does not run.

A key of this rank's own data has been seen before on one rank and not on another. A key that the rank alone decides is
the same at each call, so that all ranks run the body at the first one.
"""

from __future__ import annotations

import ast

from ..traces.nodes import Branch, Op, Tree, every_node
from ..values.evaluate import rank_dependent
from ..values.value import NO_TAINT, Taints, Value, symbol, union
from .frame import Frame

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
FORM = "cache"
_OWN = ("rank", "group-rank", "data", "random", "time", "filesystem", "environment")


def communicates(frame: Frame, function: Value) -> bool:
    """Whether ranks may meet in a function."""
    while function.tag == "wrapped":
        function = function.data[1]
    return function.tag == "func" and frame.machine.reach.reaches(function.data[0])


def call_cached(
    frame: Frame, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST, spread: bool
) -> Value:
    """A call of a function with a cache: a rank whose key is known skips what the function does."""
    from .calls import call_value
    from .contents import whole
    from .expressions import text_of

    keys = [whole(frame, value) for value in (*args, *kwargs.values())]
    with frame.collecting() as nodes:
        result = call_value(frame, function, args, kwargs, node, spread=spread)
    why = union(*(own_key(key) for key in keys)) if _meets(nodes) else NO_TAINT
    if why:
        condition = symbol(("kept", frame.place(node), *(key.key for key in keys)), why)
        frame.out.append(Branch(frame.place(node), condition, [], nodes, FORM, text_of(node)))
    else:
        frame.out.extend(nodes)
    return result


def own_key(key: Value) -> Taints:
    """Why a key may be new on one rank alone."""
    from .containers import data_of

    if rank_dependent(key):
        return NO_TAINT
    return data_of(frozenset(t for t in key.taint if t.kind in _OWN))


def fills(frame: Frame, mapping: ast.expr, key: ast.expr) -> bool:
    """Whether the function at hand itself puts something under a key into a mapping: it keeps results there."""
    from .expressions import text_of

    if frame.function is None:
        return False
    return any(
        isinstance(target, ast.Subscript)
        and text_of(target.slice) == text_of(key)
        and text_of(target.value) == text_of(mapping)
        for node in ast.walk(frame.function.node)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def _meets(nodes: Tree) -> bool:
    return any(isinstance(node, Op) for node in every_node(nodes))
