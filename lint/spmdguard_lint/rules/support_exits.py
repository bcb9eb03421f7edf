"""What the exit of a with statement does only where its block has raised."""

from __future__ import annotations

from collections.abc import Hashable

from ..traces.files import parts_of
from ..traces.nodes import Branch, Call, Jump, Node, Op, Tree, Try, every_node
from ..values.evaluate import Valuation, truth
from ..values.value import Value
from .support_trees import parts


def exception_there(condition: Value, *, there: bool = True) -> dict[Hashable, bool]:
    """What an exception that is there, or is not, makes of the parts of a condition."""
    atoms: dict[Hashable, bool] = {}
    for part in parts_of(condition):
        if is_exception(part):
            atoms[part.key] = there
        elif part.tag == "expr" and part.data[0] in ("is", "is not") and any(map(is_exception, part.data[1])):
            atoms[part.key] = (part.data[0] == "is not") is there
    return atoms


def is_exception(value: Value) -> bool:
    """Whether a value is what ``__exit__`` is told of the exception."""
    name = value.data[0] if value.tag == "sym" else None
    return isinstance(name, tuple) and name[:1] == ("exc-type",)


def on_failure(tree: Tree) -> Tree:
    """The nodes of an exit that run where the block has raised, and whose operations do not run elsewhere."""
    found: list[Node] = []
    for index, node in enumerate(tree):
        failed = _asks_for_failure(node) if isinstance(node, Branch) else None
        if isinstance(node, Branch) and failed is not None:
            arm, other = (node.then, node.orelse) if failed else (node.orelse, node.then)
            rest = tree[index + 1 :] if other and isinstance(other[-1], Jump) else []
            if not _ops([*arm, *rest]) & _ops(other):
                found += [*arm, *rest]
        elif isinstance(node, (Call, Try)):
            found += [inner for _, child in parts(node) for inner in on_failure(child)]
    return found


def _ops(tree: Tree) -> set[str]:
    return {node.name for node in every_node(tree) if isinstance(node, Op)}


def _asks_for_failure(branch: Branch) -> bool | None:
    """Whether a condition holds where there is an exception (True), where there is none (False), or asks else."""
    answers = [
        truth(branch.condition, Valuation(0, 2, atoms=exception_there(branch.condition, there=there)))
        for there in (True, False)
    ]
    return answers[0] if None not in answers and answers[0] is not answers[1] else None
