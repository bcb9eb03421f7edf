"""Framework hooks: methods of user classes that a trainer calls on every rank, and what follows their return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..traces.nodes import Branch, Jump, Node, Op, Tree
from ..values.value import NONE

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo
    from .frame import Frame

_LIGHTNING = "pytorch_lightning.LightningModule"


def on_its_ranks(frame: Frame, function: FunctionInfo, nodes: Tree) -> Tree:
    """What a function that nothing in sight calls does, given that its decorators let in some ranks only."""
    from .closures import main_only
    from .expressions import text_of
    from .facts_values import main_predicate

    limited = main_only(frame, function)
    if limited is None or not nodes:
        return nodes
    which, decorator = limited
    condition = main_predicate(frame, which, decorator, text_of(decorator))
    return [Branch(frame.place(decorator), condition, nodes, [], "decorator", text_of(decorator))]


def after_root(frame: Frame, function: FunctionInfo) -> None:
    """Lightning's automatic optimisation runs ``backward`` on what ``training_step`` returns, unless it is None."""
    if function.cls is None or function.name != "training_step":
        return
    bases = function.cls.external_bases()
    names = {facts.canonical(base).rpartition(".")[2] for base in bases}
    if "LightningModule" not in names:
        return
    assignments = function.cls.find_self_assignments("automatic_optimization")
    if assignments:
        return
    _insert_backward(frame.out)


def _insert_backward(nodes: Tree) -> None:
    position = 0
    while position < len(nodes):
        node: Node = nodes[position]
        if isinstance(node, Jump) and node.kind == "return" and node.value is not None:
            if node.value.key != NONE.key:
                nodes.insert(
                    position,
                    Op(
                        node.place,
                        "backward",
                        "collective",
                        None,
                        "backward of the returned loss",
                        implicit=True,
                    ),
                )
                position += 1
        elif isinstance(node, Branch):
            _insert_backward(node.then)
            _insert_backward(node.orelse)
        position += 1
