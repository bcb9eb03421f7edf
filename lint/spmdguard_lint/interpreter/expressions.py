"""Evaluate expressions to symbolic values; calls and short circuits leave trace nodes on the way."""

from __future__ import annotations

import ast
from collections.abc import Callable
from operator import is_
from typing import Any

from ..source.unparsing import COMPARISONS, unparse
from ..source.walking import children
from ..traces.nodes import Branch, Event, Region, Tree
from ..values.evaluate import rank_dependent, settled
from ..values.shares import is_even_share, is_stride, uncut
from ..values.value import (
    FALSE,
    NO_TAINT,
    NONE,
    TRUE,
    Taint,
    Taints,
    Value,
    alternatives,
    choice,
    constant,
    expression,
    is_const,
    negate,
    retaint,
    symbol,
    union,
)
from . import attributes
from .caches import new_key
from .comparisons import NEVER_NONE, as_rank, compare, existence, fold, logic, simplify_condition, strengthen
from .contents import condition_of, is_container, items_now, structure, version, whole, with_length
from .frame import Frame
from .gradients import missing_gradient
from .inflight import used
from .kept import present
from .local_shards import asks_if_empty, has_rows
from .lookup import lookup_name
from .narrowing import narrowed
from .partly import note_use
from .protocols import BINARY, compared, formatted, special
from .state import join

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
    ast.MatMult: "@",
}


def text_of(node: ast.AST, limit: int = 60) -> str:
    """The source form of an expression, shortened; remembered on the node, since unparsing is slow."""
    text: str | None = getattr(node, "_spmdguard_text", None)
    if text is None:
        try:
            text = " ".join(unparse(node).split())
        except (ValueError, RecursionError, AttributeError, KeyError, IndexError):
            text = "..."
        node._spmdguard_text = text  # type: ignore[attr-defined]
    return text if len(text) <= limit else text[: limit - 3] + "..."


def evaluate(frame: Frame, node: ast.expr | None) -> Value:
    """The value of an expression in a frame."""
    if node is None:
        return NONE
    handler = _HANDLERS.get(type(node))
    if handler is None:
        return _generic(frame, node)
    return handler(frame, node)


def _generic(frame: Frame, node: ast.expr) -> Value:
    parts = [evaluate(frame, child) for child in children(node) if isinstance(child, ast.expr)]
    return expression(type(node).__name__, parts) if parts else symbol(("expr", frame.place(node)))


def _constant(frame: Frame, node: ast.Constant) -> Value:
    value = node.value
    if value is None:
        return NONE
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    return constant(value)


def _name(frame: Frame, node: ast.Name) -> Value:
    if frame.partly:
        note_use(frame, node)
    value = lookup_name(frame, node.id, node)
    return narrowed(frame, node, value) if frame.narrowed else value


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    receiver = present(evaluate(frame, node.value))
    value = attributes.read_attribute(frame, receiver, node.attr, node)
    return narrowed(frame, node, value) if frame.narrowed else value


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    from .containers import read_item

    receiver = present(evaluate(frame, node.value))
    if isinstance(node.slice, ast.Slice):
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        lower, upper, step = (NONE if part is None else evaluate(frame, part) for part in parts)
        lower = as_rank(lower) if is_stride(lower, step) else lower
        bounds = (lower, upper, step)
        bound_taint = union(*(b.taint for b in bounds))
        contents = whole(frame, receiver).taint if receiver.tag == "obj" else NO_TAINT
        sliced = expression("slice", (receiver, *bounds), extra=contents)
        if any(rank_dependent(bound) for bound in bounds):
            shard = Event(frame.place(node), "shard-slice", text_of(node), (receiver,))
            frame.out.append(shard)
        if bound_taint:
            from .iterating import length_of

            length = length_of(frame, uncut(receiver))
            bound_taint = NO_TAINT if is_even_share(*bounds, receiver, length) else bound_taint
        return retaint(sliced, sliced.taint, union(receiver.trip or NO_TAINT, bound_taint))
    index = evaluate(frame, node.slice)
    if receiver.tag == "obj" and frame.machine.objects.info(receiver).fills_in:
        from .container_methods import fill_in

        receiver = fill_in(frame, receiver, index, node)
    if not is_container(frame, receiver):
        used(frame, receiver, node, written=False)
    if index.taint and receiver.tag in ("obj", "tuple", "sym", "expr"):
        from .missing import raise_where_missing

        raise_where_missing(frame, receiver, index, node)
    return read_item(frame, receiver, index, node)


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    operator = _BINARY.get(type(node.op), "?")
    for side in (left, right):
        used(frame, side, node, written=False)
    own = special(frame, left, BINARY[operator], [right], node) if operator in BINARY else None
    if own is not None:
        return own
    if operator == "%" and is_const(left) and isinstance(left.data[0], str):
        parts = right.data if right.tag == "tuple" else (right,)
        shown = [formatted(frame, part, ord("s"), node) for part in parts]
        right = right if all(map(is_, shown, parts)) else tuple_value(shown)
    if operator == "%" and left.tag == "rank":
        left = strengthen(left)
    if operator == "*" and left.tag == "obj" and frame.machine.objects.info(left).kind == "list":
        from .containers import repeated

        return repeated(frame, left, right, node)
    if operator == "/" and left.tag == "extobj":
        return _path_below(left, right)
    operands = (whole(frame, left), whole(frame, right))
    if operator in ("&", "|", "-", "^"):  # of sets, too: they are looked at as such later
        result = expression(operator, (left, right), extra=union(*(operand.taint for operand in operands)))
    else:
        result = expression(operator, operands)
    folded = fold(result)
    if folded is result and operator == "+" and (left.trip is not None or right.trip is not None):
        longer = [with_length(frame, side).trip or frozenset() for side in (left, right)]
        return retaint(result, result.taint, union(*longer))
    return folded


def _path_below(left: Value, right: Value) -> Value:
    """``path / name``: an object of the left operand's type, known by both operands."""
    joined = expression("/", (left, right))
    key = ("extobj", left.data[0], "/", left.key, right.key)
    return Value("extobj", (left.data[0], key, joined), joined.taint, None, key, joined.size)


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        if is_const(value):
            return FALSE if value.data[0] else TRUE
        if value.tag in ("obj", "func", "class") and value.tag != "obj":
            return FALSE
        return negate(strengthen(condition_of(frame, value, node)))
    if isinstance(node.op, ast.USub):
        return fold(expression("neg", (value,)))
    return expression(type(node.op).__name__, (value,))


def _bool_op(frame: Frame, node: ast.BoolOp) -> Value:
    operator = "and" if isinstance(node.op, ast.And) else "or"
    values = [evaluate(frame, node.values[0])]
    for position, operand in enumerate(node.values[1:]):
        before = values[0] if len(values) == 1 else logic(operator, values)
        state_before = frame.live.copy() if frame.state is not None else None
        with frame.collecting() as nodes:
            value = evaluate(frame, operand)
        if nodes:
            _emit_short_circuit(frame, node.values[position + 1], before, nodes, operator)
            if state_before is not None:
                taken = before if operator == "and" else negate(before)
                frame.state = join(frame.state, state_before, taken)
        values.append(value)
    return logic(operator, values)


def _emit_short_circuit(frame: Frame, node: ast.expr, before: Value, nodes: Tree, operator: str) -> None:
    then, orelse = (nodes, []) if operator == "and" else ([], nodes)
    if is_const(before):
        if bool(before.data[0]) is (operator == "and"):
            frame.out.extend(nodes)
        return
    frame.out.append(Branch(frame.place(node), before, then, orelse, "short-circuit", text_of(node)))


def _compare(frame: Frame, node: ast.Compare) -> Value:
    left = evaluate(frame, node.left)
    terms: list[Value] = []
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = _compared(frame, right_node)
        terms.append(_compare_whole(frame, COMPARISONS.get(type(op), "?"), left, right, node))
        left = right
    return terms[0] if len(terms) == 1 else logic("and", terms)


def _compare_whole(frame: Frame, operator: str, left: Value, right: Value, node: ast.AST) -> Value:
    """One comparison; a container counts with its contents, or with its structure where only that is asked for."""
    if operator in ("is", "is not"):
        asked = compare(operator, left, right)
        missing = missing_gradient(frame, left, right)
        return retaint(asked, union(asked.taint, missing), asked.trip) if missing else asked
    own = compared(frame, operator, left, right, node)
    if own is not None:
        return own
    asks = right.tag == "obj" and operator in ("==", "!=")
    is_dict = is_container(frame, right) and frame.machine.objects.info(right).kind == "dict"
    if is_dict and operator in ("in", "not in"):
        label = (operator, left.key, right.data[0], version(frame, right).key)
        new = new_key(frame, left, node) if isinstance(node, ast.Compare) else None
        why = existence(left.taint) if new is None else new
        return symbol(label, union(why, structure(frame, right)))
    result = compare(operator, items_now(frame, left), items_now(frame, right))
    result = asks_if_empty(result, operator, left, right, frame.place(node))
    return retaint(result, existence(result.taint)) if asks and result.taint else result


def _compared(frame: Frame, node: ast.expr) -> Value:
    """The right side of a comparison; a list written out there is as good as a tuple: nobody can change it."""
    if isinstance(node, (ast.List, ast.Set)) and not any(isinstance(item, ast.Starred) for item in node.elts):
        return tuple_value([evaluate(frame, item) for item in node.elts])
    return evaluate(frame, node)


def _if_exp(frame: Frame, node: ast.IfExp) -> Value:
    condition = evaluate(frame, node.test)
    if is_const(condition):
        return evaluate(frame, node.body if condition.data[0] else node.orelse)
    before = frame.live.copy() if frame.state is not None else None
    with frame.collecting() as then_nodes:
        then = evaluate(frame, node.body)
    after_then = frame.state
    frame.state = before
    with frame.collecting() as else_nodes:
        orelse = evaluate(frame, node.orelse)
    if after_then is not frame.state:
        frame.state = join(after_then, frame.state, condition)
    if then_nodes or else_nodes:
        frame.out.append(
            Branch(frame.place(node), condition, then_nodes, else_nodes, "ternary", text_of(node.test))
        )
    return choice(condition, then, orelse)


def _tuple(frame: Frame, node: ast.Tuple) -> Value:
    items = [evaluate(frame, item) for item in node.elts]
    return tuple_value(items)


def tuple_value(items: list[Value]) -> Value:
    """An immutable sequence of known length."""
    key = ("tuple", *(item.key for item in items))
    taint = union(*(item.taint for item in items)) if items else frozenset()
    return Value("tuple", tuple(items), taint, frozenset(), key, 1 + sum(i.size for i in items))


def _display(frame: Frame, node: ast.List | ast.Set | ast.Dict) -> Value:
    from .containers import make_display

    return make_display(frame, node)


def _comprehension(frame: Frame, node: Any) -> Value:
    from .loops import run_comprehension

    return run_comprehension(frame, node)


def _call(frame: Frame, node: ast.Call) -> Value:
    from .calls import evaluate_call

    _HANDLERS[ast.Call] = evaluate_call  # the rooms import each other: bound at the first call
    return evaluate_call(frame, node)


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    from .closures import lambda_value

    return lambda_value(frame, node)


def _named(frame: Frame, node: ast.NamedExpr) -> Value:
    from .assignment import assign

    value = evaluate(frame, node.value)
    assign(frame, node.target, value)
    return value


def _joined(frame: Frame, node: ast.JoinedStr) -> Value:
    parts = [
        constant(v.value)
        if isinstance(v, ast.Constant)
        else whole(frame, formatted(frame, evaluate(frame, v.value), v.conversion, v.value))
        for v in node.values
        if isinstance(v, (ast.Constant, ast.FormattedValue))
    ]
    plain = not any(
        v.format_spec or v.conversion == ord("r") for v in node.values if isinstance(v, ast.FormattedValue)
    )
    if plain and all(is_const(part) and isinstance(part.data[0], (str, int)) for part in parts):
        return constant("".join(str(part.data[0]) for part in parts))
    return expression("format", parts)


def _starred(frame: Frame, node: ast.Starred) -> Value:
    value = evaluate(frame, node.value)
    if value.tag == "generator":
        from .lazily import consumed

        consumed(frame, value, node)
    return value


def _await(frame: Frame, node: ast.Await) -> Value:
    value = evaluate(frame, node.value)
    if value.tag == "coroutine":
        from .lazily import run_coroutine

        return run_coroutine(frame, value, node)
    last = frame.out[-1] if frame.out else None
    if isinstance(last, Region) and last.kind == "thread" and last.place == frame.place(node.value):
        last.kind = "awaited"  # this coroutine goes on only after it: the order is that of the text
    from .concurrent import awaited

    awaited(frame, node)
    return value


def _yield(frame: Frame, node: ast.Yield) -> Value:
    value = evaluate(frame, node.value)
    if frame.yield_hook is not None:
        return frame.yield_hook(frame, value, node)
    frame.yielded.append(value)
    return symbol(("sent", frame.place(node)))


def _yield_from(frame: Frame, node: ast.YieldFrom) -> Value:
    if frame.yield_hook is not None and frame.state is not None:
        from .loops import execute_for

        execute_for(frame, _each_yielded(node))
        return symbol(("sent", frame.place(node)))
    value = evaluate(frame, node.value)
    frame.yielded.append(value)
    return symbol(("sent", frame.place(node)), value.taint)


def _each_yielded(node: ast.YieldFrom) -> ast.For:
    """``for item in iterable: yield item``, which is what delegating comes to for the caller's loop."""
    target = ast.copy_location(ast.Name("<item>", ast.Store()), node)
    item = ast.copy_location(ast.Name("<item>", ast.Load()), node)
    statement = ast.copy_location(ast.Expr(ast.copy_location(ast.Yield(item), node)), node)
    return ast.copy_location(ast.For(target, node.value, [statement], [], None), node)


def truthiness(frame: Frame, node: ast.expr) -> Value:
    """The value of a condition."""
    value = condition_of(frame, strengthen(evaluate(frame, node)), node)
    value = simplify_condition(has_rows(value, value, frame.place(node)))
    always = settled(value)
    return value if always is None else constant(always)


def may_be_references(value: Value) -> bool:
    """Whether any alternative of the value can be called or has attributes that are known."""
    return any(v.tag in NEVER_NONE for v in alternatives(value))


def varying_symbol(name: Any, kind: str, frame: Frame, node: ast.AST, text: str, **more: Any) -> Value:
    """An opaque value that differs between ranks for one reason."""
    taint: Taints = frozenset({Taint(kind, frame.place(node), text, **more)})
    return symbol(name, taint)


_HANDLERS: dict[type[ast.expr], Callable[[Frame, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
    ast.IfExp: _if_exp,
    ast.Tuple: _tuple,
    ast.List: _display,
    ast.Set: _display,
    ast.Dict: _display,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Call: _call,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.JoinedStr: _joined,
    ast.Starred: _starred,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
}
