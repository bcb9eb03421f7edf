"""What is made now and runs later: ``map``, ``filter``, generator expressions and coroutines that get a name.

Terminology: a *lazy* value is one of these that communicates. Written into the call that consumes it
(``list(map(f, items))``, ``await f(x)``) it runs there, and is read as if it ran at once. Assigned or returned, it is
read where it is consumed, which may be on some ranks only. Where it is handed to something unknown, it is taken to be
consumed there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

from ..names.functions import FunctionInfo
from ..names.scopes import Scope, target_names
from ..source.walking import walk
from ..traces.nodes import LISTED, Call, Loop, Op, Region, every_node
from ..values.value import FALSE, NONE, Value, expression, union
from .expressions import evaluate, text_of
from .frame import Frame

_Node = TypeVar("_Node", bound=ast.AST)
_ITEMS, _ITEM, _FUNCTION = "<items>", "<item>", "<function>"
_ENDED, _SKIPPED = "<ended>", "<skipped>"
_APPLYING = frozenset({"map", "filter"})
_LISTS = frozenset({ast.List, ast.Tuple, ast.ListComp})
_LAZY = frozenset({"<genexpr>", "<map>", "<filter>"})


def evaluate_lazily(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression that is assigned or returned."""
    kind = type(node)
    if kind is ast.Call:
        called: ast.expr = node.func  # type: ignore[attr-defined]
        if isinstance(called, ast.Name) and called.id in _APPLYING:
            return _later(frame, node)
        if frame.module.contains(b"async def"):
            return _coroutine(frame, node) or evaluate(frame, node)  # type: ignore[arg-type]
    if kind in _LISTS and frame.module.contains(b"async def"):
        return _listed(frame, node)
    return _later(frame, node) if kind is ast.GeneratorExp else evaluate(frame, node)


def _listed(frame: Frame, node: ast.expr) -> Value:
    """A list that gets a name, with coroutines in it: read where they are made, and marked as awaited elsewhere."""
    with frame.collecting() as nodes:
        value = evaluate(frame, node)
    made = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    places = {frame.place(one) for one in made if isinstance(one, (ast.Call, ast.ListComp))}
    for one in nodes:
        later = isinstance(one, (Call, Loop)) and one.place in places and _is_async(frame, node)
        frame.out.append(Region(one.place, LISTED, [one], text_of(node)) if later else one)
    return value


def _is_async(frame: Frame, node: ast.expr) -> bool:
    """Whether the items that a list is written with are calls of coroutine functions, which nothing awaits there."""
    made = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [getattr(node, "elt", node)]
    for one in made:
        if isinstance(one, ast.Call) and isinstance(one.func, (ast.Name, ast.Attribute)):
            with frame.collecting():
                function = evaluate(frame, one.func)
            if function.tag == "func" and function.data[0].is_async:
                return True
    return False


def _later(frame: Frame, node: ast.expr) -> Value:
    """Read at once to see whether it communicates; if it does, it is left for where it is consumed."""
    before = frame.live.copy()
    with frame.collecting() as nodes:
        value = evaluate(frame, node)
    if frame.state is None or not any(isinstance(one, Op) for one in every_node(nodes)):
        frame.out.extend(nodes)
        return value
    frame.state = before
    with frame.collecting() as first:
        args = _given_now(frame, node)
    frame.out.extend(first)
    info = frame.machine.lazy.get(id(node))
    if info is None:
        info = frame.machine.lazy[id(node)] = _as_generator(frame, node, len(args))
    key = ("generator", id(info), frame.serial, frame.place(node))
    taint = union(*(arg.taint for arg in args))
    return Value("generator", (info, frame, None, tuple(args), ()), taint, None, key)


def _given_now(frame: Frame, node: ast.expr) -> list[Value]:
    """What is evaluated when a lazy value is made: the first iterable, the function and its iterables."""
    if isinstance(node, ast.GeneratorExp):
        return [evaluate(frame, node.generators[0].iter)]
    assert isinstance(node, ast.Call)
    return [evaluate(frame, arg) for arg in node.args]


def _as_generator(frame: Frame, node: ast.expr, num_args: int) -> FunctionInfo:
    """The generator function that a lazy value stands for."""
    body: list[ast.stmt]
    if isinstance(node, ast.GeneratorExp):
        body, names = _of_expression(node), ["<genexpr>", _ITEMS]
    else:
        assert isinstance(node, ast.Call)
        iterables = [f"{_ITEMS}{position}" for position in range(num_args - 1)]
        name = f"<{text_of(node.func)}>"
        body, names = _of_application(node, name, iterables), [name, _FUNCTION, *iterables]
    return _generator(frame, node, names, body)


def _generator(frame: Frame, node: ast.expr, names: list[str], body: list[ast.stmt]) -> FunctionInfo:
    """A generator function of a name, parameters and statements that stand where an expression does."""
    parameters = ast.arguments([], [ast.arg(name) for name in names[1:]], None, [], [], None, [])
    made = ast.copy_location(ast.FunctionDef(names[0], parameters, body, [], None, None), node)
    for part in walk(made):
        if isinstance(part, (ast.stmt, ast.expr, ast.arg)) and not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    info = FunctionInfo(frame.module, made, names[0], names[0], None, frame.function)
    stored = [name for part in walk(made) if isinstance(part, ast.For) for name in target_names(part.target)]
    stored += [_ITEM] if any(isinstance(part, ast.Assign) for part in walk(made)) else []
    none: frozenset[str] = frozenset()
    info.__dict__["scope"] = Scope(frozenset({*names[1:], *stored}), none, none, {}, True)
    return info


def _of_expression(node: ast.GeneratorExp) -> list[ast.stmt]:
    """``(f(x) for x in items if p(x))`` as a loop that yields."""
    inner: ast.stmt = ast.copy_location(ast.Expr(ast.copy_location(ast.Yield(node.elt), node.elt)), node.elt)
    for position in reversed(range(len(node.generators))):
        level = node.generators[position]
        for test in reversed(level.ifs):
            inner = ast.copy_location(ast.If(test, [inner], []), test)
        over = _named(_ITEMS, text_of(level.iter)) if position == 0 else level.iter
        inner = ast.copy_location(ast.For(level.target, over, [inner], [], None), node)
    return [inner]


def _of_application(node: ast.Call, name: str, iterables: Sequence[str]) -> list[ast.stmt]:
    """``map(f, items)`` or ``filter(f, items)`` as a loop that yields."""
    items = [f"{_ITEM}{position}" for position in range(len(iterables))]
    loaded: list[ast.expr] = [ast.Name(item, ast.Load()) for item in items]
    call = _call(node, loaded)
    if name == "<filter>":
        given: ast.stmt = ast.Expr(ast.Yield(ast.Name(items[0], ast.Load())))
        inner: ast.stmt = ast.If(call, [given], [])
    else:
        inner = ast.Expr(ast.Yield(call))
    for item, iterable, written in zip(items, iterables, node.args[1:], strict=True):
        over = _named(iterable, text_of(written))
        if item is items[0]:
            target: ast.expr = ast.Name(item, ast.Store())
            source: ast.expr = over
        else:
            target = ast.Tuple([target, ast.Name(item, ast.Store())], ast.Store())
            source = ast.Call(ast.Name("zip", ast.Load()), [source, over], [])
    return [ast.For(target, source, [inner], [], None)]


def ends_by_test(
    frame: Frame, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """``takewhile(test, items)`` and ``iter(function, last)``: a generator that ends where its function says so."""
    if len(args) != 2 or not isinstance(node, ast.Call):
        return expression(f"call:{name}", args)
    info = frame.machine.lazy.get(id(node))
    if info is None:
        last = name.rpartition(".")[2]
        body = _of_test(node) if last == "takewhile" else _of_sentinel(node)
        info = frame.machine.lazy[id(node)] = _generator(frame, node, [f"<{last}>", _FUNCTION, _ITEMS], body)
    key = ("generator", id(info), frame.serial, frame.place(node), *(arg.key for arg in args))
    taint = union(*(arg.taint for arg in args))
    return Value("generator", (info, frame, None, tuple(args), ()), taint, None, key)


def cut_short(frame: Frame, name: str, args: list[Value], node: ast.AST) -> Value | None:
    """``islice(generator, n)``: a generator that ends after n items; None where the items come from something else.

    So it is with generators that communicate: who draws more items than the others calls more collectives.
    """
    if not 1 < len(args) < 5 or not isinstance(node, ast.Call) or args[0].tag != "generator":
        return None
    start, stop, step = [None, *args[1:], None] if len(args) == 2 else [*args[1:], None][:3]
    if stop is None or stop.key == NONE.key:
        return None  # all are drawn
    if not is_lazy(args[0]) and not frame.machine.reach.reaches(args[0].data[0]):
        return None
    info = frame.machine.lazy.get(id(node))
    if info is None:
        names = ["<islice>", _ENDED, _SKIPPED, _ITEMS]
        info = frame.machine.lazy[id(node)] = _generator(frame, node, names, _of_slice(node))
    left_out = [bound for bound in (start, step) if bound is not None]
    skipped = expression(f"call:{name}", left_out) if left_out else FALSE
    given = (expression(f"call:{name}", [stop]), skipped, args[0])
    key = ("generator", id(info), frame.serial, frame.place(node), *(arg.key for arg in args))
    return Value("generator", (info, frame, None, given, ()), union(*(a.taint for a in args)), None, key)


def _of_slice(node: ast.Call) -> list[ast.stmt]:
    """``islice(items, start, stop)`` as a loop that yields, until there are enough."""
    text = text_of(node)
    leave = ast.If(_named(_ENDED, f"{text} has all its items"), [_shown(ast.Break(), text)], [])
    give = ast.Expr(ast.Yield(ast.Name(_ITEM, ast.Load())))
    choose = ast.If(_named(_SKIPPED, f"{text} leaves out an item"), [ast.Pass()], [give])
    over = _named(_ITEMS, text_of(node.args[0]))
    return [ast.For(ast.Name(_ITEM, ast.Store()), over, [choose, leave], [], None)]


def _of_test(node: ast.Call) -> list[ast.stmt]:
    """``takewhile(test, items)`` as a loop that yields, until the test fails."""
    item = ast.Name(_ITEM, ast.Load())
    plain = isinstance(node.args[0], (ast.Name, ast.Attribute))
    text = f"not {text_of(node.args[0])}(...)" if plain else text_of(node)
    failed = _shown(ast.UnaryOp(ast.Not(), _call(node, [item])), text)
    leave = ast.If(failed, [_shown(ast.Break(), text_of(node))], [])
    give = ast.Expr(ast.Yield(item))
    over = _named(_ITEMS, text_of(node.args[1]))
    return [ast.For(ast.Name(_ITEM, ast.Store()), over, [leave, give], [], None)]


def _of_sentinel(node: ast.Call) -> list[ast.stmt]:
    """``iter(function, last)`` as a loop that yields what the function gives, until that is the last value."""
    item = ast.Name(_ITEM, ast.Load())
    take = ast.Assign([ast.Name(_ITEM, ast.Store())], _call(node, []), None)
    last = _named(_ITEMS, text_of(node.args[1]))
    ended = _shown(ast.Compare(item, [ast.Eq()], [last]), text_of(node))
    leave = ast.If(ended, [_shown(ast.Break(), text_of(node))], [])
    return [ast.While(ast.Constant(True), [take, leave, ast.Expr(ast.Yield(item))], [])]


def _call(node: ast.Call, args: list[ast.expr]) -> ast.Call:
    """A call of the function that a lazy value is made with."""
    call = ast.Call(_named(_FUNCTION, text_of(node.args[0])), args, [])
    return _shown(ast.copy_location(call, node), text_of(node))


def _shown(node: _Node, text: str) -> _Node:
    """A node that reports show as a text."""
    node._spmdguard_text = text  # type: ignore[attr-defined]
    return node


def _named(name: str, text: str) -> ast.Name:
    """A name that reports show as the text it stands for."""
    return _shown(ast.Name(name, ast.Load()), text)


def _coroutine(frame: Frame, node: ast.Call) -> Value | None:
    """A call of an ``async def`` that is not awaited here; None for other calls."""
    if not isinstance(node.func, (ast.Name, ast.Attribute)):
        return None
    with frame.collecting() as first:
        function = evaluate(frame, node.func)
    info = function.data[0] if function.tag == "func" else None
    if info is None or not info.is_async or info.scope.has_yield or not frame.machine.reach.reaches(info):
        return None
    from .arguments import evaluate_arguments

    frame.out.extend(first)
    args, kwargs, spread, _ = evaluate_arguments(frame, node)
    taint = union(*(value.taint for value in (*args, *kwargs.values())))
    named = tuple(sorted(kwargs.items(), key=lambda item: item[0]))
    key = ("coroutine", id(info), frame.place(node), *(arg.key for arg in args))
    return Value("coroutine", (function, tuple(args), named, spread), taint, None, key)


def run_coroutine(frame: Frame, value: Value, node: ast.AST) -> Value:
    """What a coroutine does, where it is awaited or handed to a loop; other values as they are."""
    if value.tag != "coroutine":
        return value
    from .calls import call_value

    function, args, kwargs, spread = value.data
    result = call_value(frame, function, list(args), dict(kwargs), node, spread=spread)
    last = frame.out[-1] if frame.out else None
    if isinstance(last, Call) and last.place == frame.place(node):
        last.mode = "coroutine"  # what runs it has another name
    return result


def is_lazy(value: Value) -> bool:
    """Whether a value stands for something that was assigned or returned before it ran."""
    return value.tag == "coroutine" or (value.tag == "generator" and value.data[0].name in _LAZY)


def consumed(frame: Frame, value: Value, node: ast.AST) -> bool:
    """Run a lazy value to its end where something takes it; tells whether it was one."""
    if not is_lazy(value) or frame.state is None:
        return False
    if value.tag == "coroutine":
        run_coroutine(frame, value, node)
        return True
    from .loops import consume

    return consume(frame, node, value, lambda _item: None, text_of(node))
