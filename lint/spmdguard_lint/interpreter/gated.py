"""While loops that communicate only where a test holds that all ranks share (``if synced: all_reduce(flag)``).

The test has one answer for all rounds. Where it fails the loop is each rank's own affair: what ends it then makes
nobody call anything more often.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping

from ..traces.nodes import Branch, Op, Tree
from ..traces.paths import Facts, assumed
from ..values.value import (
    FALSE,
    TRUE,
    Place,
    Taints,
    Value,
    called,
    choice,
    expression,
    is_const,
    negate,
    parts_of,
)


def deciding(condition: Value, nodes: Tree, loop: ast.While, filename: str) -> Taints:
    """Why ranks may differ in a loop's condition, as far as the loop then communicates."""
    rows = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)

    def is_the_same(test: Value) -> bool:
        """Whether nothing in a test was made in the loop, or is asked anew in each round."""
        return not any(
            (part.tag == "expr" and called(part.data[0]))
            or (part.tag == "sym" and _made_within(part.data[0], filename, rows))
            for part in parts_of(test)
        )

    gates = dict(_gates(nodes, is_the_same) or ()) if condition.taint else {}
    return _under(condition, gates).taint if gates else condition.taint


def _made_within(label: object, filename: str, rows: range) -> bool:
    if isinstance(label, Place):
        return label.filename == filename and label.row in rows
    return isinstance(label, tuple) and any(_made_within(part, filename, rows) for part in label)


def _gates(nodes: Tree, is_the_same: Callable[[Value], bool]) -> Facts | None:
    """The tests, with their answers, behind which all operations of a tree stand; None where it has no operation."""
    found: Facts | None = None
    stack: list[tuple[Tree, Facts]] = [(nodes, frozenset())]
    while stack:
        tree, behind = stack.pop()
        for node in tree:
            if isinstance(node, Op):
                found = behind if found is None else found & behind
            elif isinstance(node, Branch) and not node.condition.taint and is_the_same(node.condition):
                stack.append((node.then, assumed(behind, node.condition, True)))
                stack.append((node.orelse, assumed(behind, node.condition, False)))
            else:
                stack.extend((child, behind) for child in node.subtrees())
    return found


def _under(value: Value, gates: Mapping[Hashable, bool]) -> Value:
    """A condition where the answers to some tests are given."""
    if value.key in gates:
        return TRUE if gates[value.key] else FALSE
    if value.tag == "ite":
        test, then, orelse = value.data
        return choice(_under(test, gates), _under(then, gates), _under(orelse, gates))
    if value.tag != "expr" or value.data[0] not in ("not", "and", "or"):
        return value
    operator, operands = value.data
    parts = [_under(operand, gates) for operand in operands]
    if operator == "not":
        return negate(parts[0])
    ends = operator == "or"
    open_parts = [part for part in parts if not is_const(part)]
    if any(is_const(part) and bool(part.data[0]) is ends for part in parts):
        return TRUE if ends else FALSE
    return expression(operator, open_parts) if open_parts else FALSE if ends else TRUE
