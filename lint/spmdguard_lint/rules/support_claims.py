"""Which rule reports which divergence: every divergence has exactly one owner.

Terminology: the *owner* of a divergence is the code of the rule that reports it. It follows from the shape
(what the arms do) and the kind of the strongest taint (why the ranks may disagree). Other divergences of the
same condition are other objects and may have other owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..traces.nodes import Branch, Handler, Node, Tree, Try
from ..traces.terms import subtrees

if TYPE_CHECKING:
    from ..traces.divergence import Divergence

RANK_KINDS = ("rank", "group-rank")
_BY_KIND = {
    "time": "SPG302",
    "random": "SPG303",
    "filesystem": "SPG304",
    "data": "SPG305",
    "environment": "SPG306",
    "signal": "SPG308",
    "order": "SPG403",
    "exception": "SPG202",
}
_OUT_OF_MEMORY = ("OutOfMemoryError", "OutOfMemory")


def owner(divergence: Divergence) -> str:
    """The code of the rule that reports a divergence."""
    shape, kind = divergence.shape, divergence.kind
    by_rank = kind in RANK_KINDS
    if shape == "handler":
        return "SPG206"
    if shape == "swallow":
        return "SPG203" if about_memory(divergence) else "SPG202"
    if shape == "trip":
        return _loop_owner(divergence)
    if shape == "exit":
        if divergence.jump is not None and divergence.jump.kind == "raise":
            return "SPG205"
        return "SPG102" if by_rank or kind in ("data", "exception") else _BY_KIND.get(kind, "SPG102")
    if not by_rank:
        return _BY_KIND.get(kind, "SPG305")
    if shape == "order":
        return "SPG103"
    if divergence.form in ("short-circuit", "ternary"):
        return "SPG105"
    return "SPG104" if divergence.through_call else "SPG101"


def _loop_owner(divergence: Divergence) -> str:
    if divergence.form != "while":
        return "SPG401"
    return {"time": "SPG302", "signal": "SPG308"}.get(divergence.kind, "SPG402")


def claimed(divergences: Iterable[Divergence], code: str) -> Iterator[Divergence]:
    """The divergences that the rule ``code`` reports."""
    return (d for d in divergences if owner(d) == code)


def about_memory(divergence: Divergence) -> bool:
    """Whether the handler that swallows is there for running out of device memory."""
    node = divergence.node
    if not isinstance(node, Try):
        return False
    for handler in node.handlers:
        if handler.place == divergence.condition_place:
            return handles_memory(handler)
    return False


def handles_memory(handler: Handler) -> bool:
    """Whether a clause catches out-of-memory errors by class, or asks the message for "out of memory"."""
    if any(name in _OUT_OF_MEMORY for name in handler.names):
        return True
    return any(
        isinstance(node, Branch) and "out of memory" in node.text.lower() for node in every_node(handler.body)
    )


def every_node(tree: Tree) -> Iterator[Node]:
    """Every node of a tree, outermost first."""
    stack = list(reversed(tree))
    while stack:
        node = stack.pop()
        yield node
        for child in reversed(subtrees(node)):
            stack.extend(reversed(child))


def where(divergence: Divergence) -> str:
    """On which ranks the diverging thing happens: "where `rank == 0`", or "... is false"."""
    node, text = divergence.node, divergence.condition_text
    if isinstance(node, Branch):
        target: Node | None = divergence.jump if divergence.shape == "exit" else divergence.operation
        in_else = not any(n is target for n in every_node(node.then)) and any(
            n is target for n in every_node(node.orelse)
        )
        if node.form in ("decorator", "with"):
            return f"outside `{text}`" if in_else else f"on the ranks that `{text}` lets in"
        if in_else:
            return f"where `{text}` is false"
    return f"where `{text}`"


def leaving(divergence: Divergence) -> str:
    """The exit in words, as the beginning of a sentence: "this rank returns"."""
    jump = divergence.jump
    if jump is None:
        return "some ranks leave"
    if jump.place != divergence.place:
        return f"`{divergence.text}` leaves"
    words = {"exit": "ends the process"}
    return f"`{jump.text}` {words.get(jump.kind, 'leaves')}"


def awaited(divergence: Divergence) -> str:
    """What the ranks that stay go on to."""
    if divergence.operation is not None:
        return f"`{divergence.operation.text}`"
    return "the collectives of the next round"


def decided(divergence: Divergence, reason: str) -> str:
    """The message of a divergence that something else than the rank decides."""
    condition = divergence.condition_text
    if divergence.shape == "exit":
        return (
            f"{leaving(divergence)} {where(divergence)}, which depends on {reason}, "
            f"while the other ranks go on to {awaited(divergence)}"
        )
    if divergence.shape == "trip":
        return f"`{condition}` ends after a number of rounds that depends on {reason}; each round calls `{divergence.text}`"
    if divergence.shape == "order":
        return f"`{condition}` depends on {reason}, and its two arms call different collectives"
    return f"`{divergence.text}` runs only {where(divergence)}, which depends on {reason}"
