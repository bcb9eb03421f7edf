"""What the exit of a with statement does only where its block has raised, and what it leaves out there."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..traces.files import parts_of
from ..traces.nodes import Branch, Call, Jump, Node, Op, Tree, Try, every_node
from ..values.evaluate import Valuation, truth
from ..values.value import Value
from .support_trees import parts, waits


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


def first_on_failure(tree: Tree) -> Op | None:
    """The first operation of an exit on its way where the block has raised, whether or not the exit asks for it."""
    return next((node for node in _on_the_way(tree) if isinstance(node, Op) and waits(node)), None)


def _on_the_way(tree: Tree) -> Iterator[Node]:
    """The nodes that are come to where there is an exception, up to the return of an arm that asks for it."""
    for node in tree:
        decided = _decided(node.condition, there=True) if isinstance(node, Branch) else None
        if isinstance(node, Branch) and decided is not None:
            arm = node.then if decided else node.orelse
            yield from _on_the_way(arm)
            if arm and isinstance(arm[-1], Jump):
                return
        else:
            yield node
            for _, child in parts(node):
                yield from _on_the_way(child)


def swallowed_past(exit_tree: Tree) -> tuple[Jump, Op] | None:
    """The return by which an exit swallows what its block has raised, and an operation that it calls elsewhere only."""
    for node in exit_tree:
        if isinstance(node, Call):
            there, jump = _way(node.body, there=True)
            missed = [op for op in _way(node.body, there=False)[0] if waits(op) and op not in there]
            if missed and jump is not None and jump.value is not None and _holds(jump.value, there=True):
                return jump, missed[0]
    return None


def _way(tree: Tree, *, there: bool) -> tuple[list[Op], Jump | None]:
    """The operations of an exit up to its return, with an exception or without one; unclear ones may be among them."""
    found: list[Op] = []
    for node in tree:
        if isinstance(node, Jump):
            return found, node
        if isinstance(node, Op):
            found.append(node)
        elif isinstance(node, Branch):
            arms = [node.then, node.orelse]
            known = _decided(node.condition, there=there)
            for arm in arms if known is None else [arms[not known]]:
                ops, jump = _way(arm, there=there)
                found += ops
                if jump is not None and known is not None:
                    return found, jump
        else:
            found += [op for _, child in parts(node) for op in every_node(child) if isinstance(op, Op)]
    return found, None


def _holds(value: Value, *, there: bool) -> bool:
    return _decided(value, there=there) is True


def _decided(condition: Value, *, there: bool) -> bool | None:
    return truth(condition, Valuation(0, 2, atoms=exception_there(condition, there=there)))


def _ops(tree: Tree) -> set[str]:
    return {node.name for node in every_node(tree) if isinstance(node, Op)}


def _asks_for_failure(branch: Branch) -> bool | None:
    """Whether a condition holds where there is an exception (True), where there is none (False), or asks else."""
    answers = [_decided(branch.condition, there=there) for there in (True, False)]
    return answers[0] if None not in answers and answers[0] is not answers[1] else None
