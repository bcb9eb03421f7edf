"""What an operation is given: its tensors, whether a list is there at all, whether it only begins, and on what."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..facts.fact import Arg
from ..traces.nodes import Event, Op
from ..values.value import (
    FALSE,
    NONE,
    TRUE,
    Value,
    choice,
    constant,
    expression,
    is_const,
    parts_of,
    symbol,
    union,
)
from .contents import is_container, structure, whole
from .facts_values import argument
from .frame import Frame
from .gathered import share_of_gathered
from .inflight import begun, starts
from .verdicts import verdict_on

if TYPE_CHECKING:
    from ..facts.fact import Fact

ALIASED = "aliased-output"
_COUNTED = frozenset({"broadcast_object_list"})  # of which every rank gives a list of the same length
_SPLITS = (Arg(2, "output_split_sizes"), Arg(3, "input_split_sizes"))
_LISTING = frozenset({"all_gather_object", "all_gather"})  # into the list that is their first argument
_LISTS = frozenset({"list", "tuple", "sorted"})
_PARTS = frozenset({"chunk", "split", "unbind", "tensor_split", "array_split"})
_TENSORS = ("tensor", "input_tensor", "input")


def describe(
    frame: Frame, op: Op, fact: Fact, name: str, args: list[Value], kwargs: dict[str, Value]
) -> None:
    """Fill in what an operation is given."""
    from .containers import frozen

    def present(value: Value | None) -> list[Value]:
        return [] if value is None else [value]

    handle = kwargs.get("async_op")
    op.handle = handle is not None and not (is_const(handle) and not handle.data[0])
    shared = [value for which in fact.invariant for value in present(argument(which, args, kwargs))]
    op.invariant = tuple(frozen(frame, value) for value in shared)
    op.paths = tuple(value for which in fact.paths for value in present(argument(which, args, kwargs)))
    first = args[:1] if fact.kind == "point-to-point" else args[:2]
    given = (*first, *(kwargs[word] for word in _TENSORS if word in kwargs))
    each = [part for value in given for part in (value.data if value.tag == "tuple" else (value,))]
    if op.name != "all_gather" or not args or not _sized_apart(frame, args[0]):
        op.tensors = tuple(value for value in each if value.tag in ("expr", "ite") or is_generated(value))
    if op.name == "broadcast":
        op.sent = next((value for value in given if not is_const(value)), None)
    op.tells = any(t.kind == "exception" for value in given for t in whole(frame, value).taint)
    if op.tells:
        op.verdict = verdict_on(frame, [whole(frame, value) for value in given])
        if op.verdict is not None and op.name in _LISTING and is_container(frame, args[0]):
            op.verdict = op.verdict._replace(into=args[0].data[0])
    if fact.at_root is not None:
        op.at_root = is_given(frame, argument(fact.at_root, args, kwargs) or NONE)
    if op.name in _COUNTED and args:
        op.sizes = (share_of_gathered(frame, args[0]) or count_of(frame, args[0]),)
    elif op.name == "all_to_all_single":
        op.sizes = tuple(frozen(frame, argument(which, args, kwargs) or NONE) for which in _SPLITS)
    if fact.async_handle:
        index = fact.group.index if fact.group is not None else 0
        op.begins = starts(op.name, name, kwargs, len(args), index)
    if op.begins:
        filled = {which.index for which in (*fact.buffers, *fact.outputs)}
        begun(frame, op.place, [arg for position, arg in enumerate(args[:2]) if position not in filled])


def _sized_apart(frame: Frame, outputs: Value) -> bool:
    """Whether a list of outputs has one of a size of its own for each rank: what ranks give need not be alike."""
    from .containers import fields_of

    made = frame.machine.made_by_rule.get(outputs.data[0]) if is_container(frame, outputs) else None
    if made is None or made[0] is not fields_of(frame, outputs):
        return False
    _, item, _, element = made[1]
    return any(part.key == item.key for part in parts_of(element))


def is_generated(value: Value) -> bool:
    """Whether a value is what a model's ``generate`` gives."""
    if value.tag == "expr":
        return str(value.data[0]).rpartition(".")[2].removeprefix("call:") == "generate"
    label = value.data[0] if value.tag == "sym" else None
    return isinstance(label, tuple) and str(label[0]).rpartition(".")[2] == "generate"


def count_of(frame: Frame, value: Value) -> Value:
    """The number of items of a list, as far as it can be evaluated for a rank."""
    if value.tag == "ite":
        condition, then, orelse = value.data
        return choice(condition, count_of(frame, then), count_of(frame, orelse))
    if value.tag == "tuple":
        return constant(len(value.data))
    if is_container(frame, value):
        return _count_now(frame, value) or symbol(("count", value.key))
    return symbol(("count", value.key))


def _count_now(frame: Frame, value: Value) -> Value | None:
    """The number of items of a list that was written down, repeated or made by a comprehension, and then let alone."""
    from .containers import fields_of, frozen

    fields = fields_of(frame, value)
    repeated = frame.machine.repeated.get(value.data[0])
    if repeated is not None and repeated.fields is fields:
        return repeated.times
    made = frame.machine.made_by_rule.get(value.data[0])
    if made is not None and made[0] is fields:
        rule = (*made[1][:3], TRUE)
        key = ("each", *(part.key for part in rule))
        return expression("len", (Value("each", rule, union(*(part.taint for part in rule)), None, key),))
    listed = frozen(frame, value) if not structure(frame, value) else NONE
    return constant(len(listed.data)) if listed.tag == "tuple" else None


def _makes_list(operator: str) -> bool:
    """Whether a call gives a list or a tuple, and never None."""
    return operator in _LISTS or operator.rpartition(".")[2].removeprefix("call:") in _PARTS


def is_given(frame: Frame, value: Value) -> Value:
    """Whether an argument is a list with entries, as a condition; opaque where that is not known."""
    if is_const(value):
        return TRUE if value.data[0] else FALSE
    if value.tag == "expr" and _makes_list(value.data[0]):
        if any(part.tag == "ite" or is_container(frame, part) for part in value.data[1]):
            return symbol(("given", value.key))
        if not any(t.kind in ("rank", "group-rank") for t in value.taint):
            return TRUE
    if value.tag == "ite":
        condition, then, orelse = value.data
        return choice(condition, is_given(frame, then), is_given(frame, orelse))
    if value.tag == "tuple":
        return TRUE if value.data else FALSE
    if is_container(frame, value):
        from .containers import fields_of

        if fields_of(frame, value) and not structure(frame, value):
            return TRUE
    return symbol(("given", value.key))


def mark_aliases(
    frame: Frame, fact: Fact, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> None:
    """Mark a call whose list of outputs holds one tensor several times."""
    from .expressions import text_of

    for which in (*fact.buffers, *fact.outputs) if fact.kind == "collective" else ():
        value = argument(which, args, kwargs)
        if value is not None and is_container(frame, value) and _is_one_tensor(frame, value):
            frame.out.append(Event(frame.place(node), ALIASED, text_of(node)))
            return


def _is_one_tensor(frame: Frame, value: Value) -> bool:
    """``[x] * n`` as it was made, or ``[x, x]``; numbers, texts and None are no tensors."""
    from .containers import fields_of

    fields = fields_of(frame, value)
    items = [item for item in fields.values() if item.tag in ("sym", "expr")]
    if len(items) != len(fields):
        return False
    repeated = frame.machine.repeated.get(value.data[0])
    if repeated is not None and repeated.fields is fields:
        return True
    return len({id(item) for item in items}) < len(items)
