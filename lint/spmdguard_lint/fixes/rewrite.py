"""Edits of a libcst tree, collected first and then made in one pass.

Terminology: a statement is *replaced* by any number of others, and others may be put *before* and *after* it;
an expression is replaced by one. A block that loses its last statement gets ``pass``.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from .script import Script, Step


class Rewrite:
    """What shall become of the nodes of one file."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.instead: dict[cst.CSTNode, Sequence[cst.CSTNode]] = {}
        self.ahead: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        self.behind: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        self.footers: dict[cst.CSTNode, list[cst.EmptyLine]] = {}  # comments to put at a block's end
        self.names: dict[tuple[str, str], str] = {}  # how a name of a module is written, once it is imported

    def replace(self, node: cst.CSTNode, *new: cst.CSTNode) -> None:
        """Put ``new`` in a node's place; nothing removes a statement."""
        self.instead[node] = new

    def replace_run(self, steps: Sequence[Step], *new: Step) -> None:
        """Put ``new`` in the place of neighbouring statements."""
        self.replace(steps[0], *new)
        for step in steps[1:]:
            self.replace(step)

    def before(self, step: cst.CSTNode, *new: cst.CSTNode) -> None:
        """Put statements before one."""
        self.ahead.setdefault(step, []).extend(new)

    def after(self, step: cst.CSTNode, *new: cst.CSTNode) -> None:
        """Put statements behind one."""
        self.behind.setdefault(step, []).extend(new)

    def code(self) -> str:
        """The text of the file after all edits."""
        changed = self.script.module.visit(_Changes(self))
        assert isinstance(changed, cst.Module)
        return changed.code


class _Changes(cst.CSTTransformer):
    def __init__(self, rewrite: Rewrite) -> None:
        super().__init__()
        self.rewrite = rewrite

    def on_leave(  # type: ignore[override]  # any node may become several
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]:
        rewrite = self.rewrite
        node = updated_node
        if isinstance(node, cst.IndentedBlock) and not node.body:
            node = node.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])
        if isinstance(node, cst.IndentedBlock) and original_node in rewrite.footers:
            node = node.with_changes(footer=[*rewrite.footers[original_node], *node.footer])
        new = rewrite.instead.get(original_node)
        ahead = rewrite.ahead.get(original_node, ())
        behind = rewrite.behind.get(original_node, ())
        if new is None and not ahead and not behind:
            return node
        made: list[cst.CSTNode] = [*ahead, *((node,) if new is None else new), *behind]
        if len(made) == 1:
            return made[0]
        return cst.FlattenSentinel(made) if made else cst.RemoveFromParent()
