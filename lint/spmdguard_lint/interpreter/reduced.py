"""What is read before the ranks reduce it: who reduces a tensor, or gradients, expects the ranks to differ in it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ..traces.nodes import Event, Fallible, Op, every_node
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
_DEPTH = 8


def read_too_soon(frame: Frame, op: str, tensor: Value, node: ast.AST) -> None:
    """Mark the names that hold what a tensor said before an operation reduces it: each rank has its own."""
    if op != "all_reduce" or tensor.tag not in ("sym", "expr") or frame.state is None:
        return
    telling = tensor.tag == "expr" and tensor.data[0] == "call:torch.tensor"
    for name, value in frame.live.variables.items():
        if value.tag != "expr" or value.taint or not (telling or value.data[0] in _VERDICTS):
            continue
        if _reads(value, tensor, _DEPTH):
            own = frozenset({Taint("data", frame.place(node), text_of(node), "likely")})
            frame.live.variables[name] = retaint(value, union(value.taint, own), value.trip)


def _reads(value: Value, tensor: Value, depth: int) -> bool:
    """Whether an expression holds a number read out of the tensor."""
    if value.tag != "expr" or depth == 0:
        return False
    if value.data[0] in _READS and any(_is_part(part, tensor) for part in value.data[1]):
        return True
    return any(_reads(part, tensor, depth - 1) for part in value.data[1])


def _is_part(value: Value, tensor: Value) -> bool:
    """Whether a value is the tensor, or one of its elements."""
    if value.tag == "expr" and value.data[0] == "getitem":
        value = value.data[1][0]
    return value.key == tensor.key


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
