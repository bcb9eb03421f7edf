"""What is read before the ranks reduce it: who reduces a tensor, or gradients, expects the ranks to differ in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..facts.fact import Arg
from ..traces.nodes import Event, Fallible, Op, Own, every_node
from ..traces.own_data import asks_for_contents, joined_parts
from ..values.value import Taint, Value, retaint, symbol, union
from .expressions import text_of
from .frame import Frame

if TYPE_CHECKING:
    from ..facts.fact import Fact

_BY_WRAPPER = re.compile(
    rb"DistributedDataParallel|FullyShardedDataParallel|fully_shard|deepspeed|accelerat|megatron"
)
_READS = frozenset({"call:item", "call:tolist", "int", "float", "bool"})
_VERDICTS = frozenset({">", "<", ">=", "<=", "==", "!=", "not", "bool", "and", "or"})
_TOLD = _READS | _VERDICTS
_DEPTH = 8
_JOINS = re.compile("reduce|gather")
_GIVEN = ("tensor", "input_tensor", "input", "obj", "object", "value")


def _read_too_soon(frame: Frame, given: Value, node: ast.AST) -> None:
    """Mark the names and fields that hold what a value said before an operation joins it: each rank has its own."""
    state = frame.state
    if given.tag not in ("sym", "expr") or state is None:
        return
    telling = given.tag == "expr" and given.data[0] == "call:torch.tensor"
    own = frozenset({Taint("data", frame.place(node), text_of(node), "likely")})

    def marked(fields: Mapping[str, Value]) -> dict[str, Value]:
        return {
            name: retaint(value, union(value.taint, own), value.trip)
            for name, value in fields.items()
            if value.tag == "expr"
            and not value.taint
            and (telling or value.data[0] in _TOLD)
            and _reads(value, given, _DEPTH)
        }

    state.variables.update(marked(state.variables))
    for object_id, fields in state.heap.items():
        changed = marked(fields)
        if changed:
            state.heap[object_id] = {**fields, **changed}


def _reads(value: Value, tensor: Value, depth: int) -> bool:
    """Whether an expression holds a number, or an answer, read out of the tensor."""
    if value.tag != "expr" or depth == 0:
        return False
    if value.data[0] in _READS and any(_asks(part, tensor, depth) for part in value.data[1]):
        return True
    return any(_reads(part, tensor, depth - 1) for part in value.data[1])


def _asks(value: Value, tensor: Value, depth: int) -> bool:
    """Whether a value is the tensor, one of its elements, or what is computed of its contents."""
    if _is_part(value, tensor):
        return True
    if value.tag != "expr" or depth == 0 or not asks_for_contents(value):
        return False
    return any(_asks(part, tensor, depth - 1) for part in value.data[1])


def _is_part(value: Value, tensor: Value) -> bool:
    """Whether a value is the tensor, or one of its elements."""
    if value.tag == "expr" and value.data[0] == "getitem":
        value = value.data[1][0]
    return value.key == tensor.key


def note_own(frame: Frame, op: Op, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> None:
    """Note which values an operation joins: each rank has its own of them (see ``traces.own_data``)."""
    from .containers import frozen
    from .facts_apply import argument_node

    if op.implicit or op.kind != "collective" or not _JOINS.search(op.name):
        return
    given = [(value, Arg(index, "")) for index, value in enumerate(args[:2])]
    given += [(kwargs[word], Arg(-1, word)) for word in _GIVEN if word in kwargs]
    found: list[Own] = []
    for value, which in given:
        shown = argument_node(which, node) or node
        _read_too_soon(frame, value, node)
        for key, number in joined_parts(frozen(frame, value)):
            found.append((key, number, frame.place(shown), text_of(shown)))
    op.own = tuple(found)


def own_norm(frame: Frame, fact: Fact, node: ast.AST | None) -> Value | None:
    """The norm of gradients between a backward pass that exchanges nothing and the reduction by hand; else None."""
    content = frame.module.source.content
    if not fact.when_sharded or node is None or not _reduces_by_hand(content) or _BY_WRAPPER.search(content):
        return None
    for before in reversed(frame.out):
        if any(isinstance(inner, Op) for inner in every_node([before])):
            return None
        if isinstance(before, (Event, Fallible)) and before.text.endswith(".backward()"):
            place = frame.place(node)
            return symbol((fact.op, place), frozenset({Taint("data", place, text_of(node), "likely")}))
    return None


def _reduces_by_hand(content: bytes) -> bool:
    return b".grad" in content and b"all_reduce(" in content
