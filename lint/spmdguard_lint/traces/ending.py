"""Ranks that have caught an error and go on to nothing but the end of their process, which tells of it.

Terminology: an exit *tells* of a failure where its status is not 0, or is one that a variable holds. What a rank comes
to behind a clause is what stands behind the statement in the blocks around it, up to the end of the program.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .nodes import Branch, Call, Handler, Jump, Loop, Node, Op, Tree, Try, every_node
from .pointing import Chain, raised_by

_LEAVES = frozenset({"raise", "exit"})


def ends_as_failure(node: Try, handler: Handler, chain: Chain) -> bool:
    """Whether a rank that comes out of a clause meets nobody any more and ends with a status that tells of it."""
    returns = any(isinstance(step, Jump) and step.kind == "return" for step in handler.body)
    for step in itertools.chain(node.final, _behind(node, chain, returns=returns)):
        if any(
            isinstance(inner, Op) and inner.name != "destroy_process_group" for inner in every_node([step])
        ):
            return False
        if any(_tells(jump) and not chain[0][1].caught(raised_by(jump)) for jump in _jumps(step)):
            return True
    return False


def _jumps(step: Node) -> Iterator[Jump]:
    """A jump itself, or those in the arms of a test that asks whether there was an exception."""
    steps = [step]
    if isinstance(step, Branch):
        asks = any(taint.kind == "exception" for taint in step.condition.taint)
        steps = [inner for arm in step.subtrees() for inner in arm] if asks else []
    return (inner for inner in steps if isinstance(inner, Jump))


def _tells(step: Jump) -> bool:
    if step.kind not in _LEAVES:
        return False
    status = step.value
    if step.kind == "raise":
        return True
    return status is not None and not (status.tag == "const" and status.data[0] in (None, 0))


def _behind(node: Node, chain: Chain, *, returns: bool) -> Iterator[Node]:
    """What is come to behind a node, in the blocks around it; a return leads behind the call."""
    inner: Tree | None = None
    for block, _ in chain:
        at = _position(block, node, inner)
        if at is None or isinstance(block[at], Loop):  # another round of it may come
            return
        left = isinstance(block[at], Call)
        for step in block[at + 1 :] if left or not returns else ():
            yield step
            if isinstance(step, Jump):
                if step.kind != "return":
                    return
                returns = True
                break
        else:
            returns = returns and not left
        inner = block


def _position(block: Tree, node: Node, inner: Tree | None) -> int | None:
    """Where the node, or the block that was left, stands in a block."""
    for index, step in enumerate(block):
        if step is node or (inner is not None and any(tree is inner for tree in step.subtrees())):
            return index
    return None
