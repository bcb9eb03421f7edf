"""Verdicts that are joined the wrong way round, so that the success of one rank hides the failure of another.

Terminology: a *verdict* is what a rank tells the others of an error that it has caught (``traces.nodes.Verdict``). Of
successes the least counts (``MIN``, ``all``), of failures the greatest (``MAX``, ``any``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..traces.files import writes
from ..traces.handlers import handles_memory
from ..traces.nodes import Branch, Event, Fallible, Handler, Node, Op, Try, every_node
from ..values.value import parts_of
from .support_swallowed import broad

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..values.value import Place, Value

_WRITES = frozenset({"write", "rename", "mkdir", "checkpoint-save"})
_LEAST = frozenset({"MIN", "PRODUCT", "BAND", "LAND", "PROD"})
_GREATEST = frozenset({"MAX", "BOR", "LOR"})
_RIGHT = {"success": "MIN", "failure": "MAX"}
_ALL = {"success": "all", "failure": "any"}


class Hidden(NamedTuple):
    """What joins the verdicts, the clause that has caught the error, how the ranks join it, and how they should."""

    join: Op | Branch
    handler: Handler
    operator: str
    says: str
    right: str


def hidden_failures(analysis: Analysis) -> Iterator[Hidden]:
    """The joins of verdicts by which one rank that is well outweighs those that have failed; each once."""
    seen: set[Place] = set()
    for root in analysis.roots:
        if not root.contents.ops:
            continue
        nodes = [step.node for step in root.steps]
        joins = [
            (node, operator)
            for node in nodes
            if isinstance(node, Op) and node.verdict is not None and (operator := _operator(node, nodes))
        ]
        for op, operator in joins:
            assert op.verdict is not None
            wrong = _GREATEST if op.verdict.says == "success" else _LEAST
            if operator not in wrong or op.place in seen:
                continue
            others = [other for one, other in joins if one.verdict == op.verdict]
            handler = _clause(nodes, op.verdict.place, success=op.verdict.says == "success")
            if (
                handler is not None and set(others) <= wrong
            ):  # both of them together ask whether the ranks agree
                seen.add(op.place)
                yield Hidden(op, handler, operator, op.verdict.says, _RIGHT[op.verdict.says])
        for hidden in _asked(nodes):
            if hidden.join.place not in seen:
                seen.add(hidden.join.place)
                yield hidden


def _asked(nodes: list[Node]) -> Iterator[Hidden]:
    """The questions whether any rank is well, or all have failed, put to the verdicts that were gathered."""
    for op in nodes:
        if not isinstance(op, Op) or op.verdict is None or op.verdict.into is None:
            continue
        says = op.verdict.says
        asked = {
            question: branch
            for branch in nodes
            if isinstance(branch, Branch)
            for question in _questions(branch.condition, op.verdict.into)
        }
        wrong = "any" if says == "success" else "all"
        handler = _clause(nodes, op.verdict.place, success=says == "success")
        if handler is not None and set(asked) == {wrong}:
            yield Hidden(asked[wrong], handler, wrong, says, _ALL[says])


def _questions(condition: Value, held: Hashable) -> Iterator[str]:
    """Whether a condition asks for ``any`` or ``all`` items of a list, or looks into it in another way ("")."""
    for part in parts_of(condition):
        operands = part.data[1] if part.tag == "expr" else ()
        if any(_is_contents(operand, held) for operand in operands):
            yield part.data[0] if part.data[0] in ("any", "all") else ""


def _is_contents(value: Value, held: Hashable) -> bool:
    label = value.data[0] if value.tag == "sym" else None
    return isinstance(label, tuple) and label[:1] == ("contents",) and label[1:2] == (held,)


def _operator(op: Op, nodes: list[Node]) -> str:
    """The reduce operator of an operation, in capitals."""
    for value in op.invariant:
        name = _name(value)
        if name in _LEAST | _GREATEST:
            return name
    for event in nodes:
        if isinstance(event, Event) and event.name == "reduce-boolean" and event.place == op.place:
            asked = event.keywords.get("all", event.args[1] if len(event.args) > 1 else None)
            return "MIN" if asked is None else "MAX" if _is_false(asked) else ""
    return ""


def _is_false(value: Value) -> bool:
    return value.tag == "const" and value.data[0] is False


def _name(value: Value) -> str:
    if value.tag in ("ext", "const") and isinstance(value.data[0], str):
        return value.data[0].rpartition(".")[2].upper()
    return ""


def _clause(nodes: list[Node], place: Place, *, success: bool) -> Handler | None:
    """The clause of a try statement that catches what one rank alone meets.

    What a rank cannot read another one may have; to end when the last rank has no data left is right.
    """
    node = next((node for node in nodes if isinstance(node, Try) and node.place == place), None)
    if node is None:
        return None
    inside = list(every_node(node.body))
    acts = any(isinstance(one, Op) or _puts(one) for one in inside)
    if success and not acts:
        return None
    if not acts and not any(isinstance(one, Fallible) for one in inside):
        return None
    memory = [handler for handler in node.handlers if handles_memory(handler)]
    return next(iter((*broad(node), *memory)), None)


def _puts(node: Node) -> bool:
    """Whether a file is written."""
    return isinstance(node, Event) and (node.name in _WRITES or (node.name == "open" and writes(node)))
