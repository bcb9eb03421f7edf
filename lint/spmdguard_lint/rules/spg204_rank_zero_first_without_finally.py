"""
# rank-zero-first-without-finally (SPG204)

## What it does
Finds the hand-written "main process first": the others wait at a barrier, the main rank works, then meets
them at the second barrier, without a `finally` around the work.

## Why is this bad
The work is what fails: a download, a full disk, a broken file. When it raises, the main rank never comes
to its barrier, and the others wait there until the timeout, while the message that explains it is on one
rank only.

## Example
```python
import torch.distributed as dist


def prepare(fetch, path):
    if dist.get_rank() != 0:
        dist.barrier()
    fetch(path)
    if dist.get_rank() == 0:
        dist.barrier()
```

## Use instead
```python
import torch.distributed as dist


def prepare(fetch, path):
    if dist.get_rank() != 0:
        dist.barrier()
    try:
        fetch(path)
    finally:
        if dist.get_rank() == 0:
            dist.barrier()
```

or `with spmdguard.main_process_first():`, which is this with the error kept.

## Known limits
Reported where two barriers under complementary conditions stand in the same block with a call between
them, or with the `yield` of a context manager between them. Work between the barriers that cannot raise
is not told apart from work that can.

## Fix safety
Safe: without an error the same happens as before. Where the work may `return`, `break` or `continue`, the fix is
unsafe, because the barrier is then met on that way too.

## References
- `accelerate.PartialState.main_process_first` releases the others in `finally`
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Finding
from ..source.walking import walk
from ..traces.nodes import Branch, Call, Fallible, Node, Op, Tree, every_node
from ..values.evaluate import Valuation, rank_dependent, truth
from .registry import rule
from .support_trees import WORLDS, Step, finding_at, parts, waits

if TYPE_CHECKING:
    from ..analysis import Analysis, Root

RULE = rule(
    code="SPG204",
    name="rank-zero-first-without-finally",
    severity="warning",
    status="stable",
    page=__doc__,
    fix="safe",
)
HELP = "put the second barrier into `finally`, or use `main_process_first()`"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Pairs of barriers under complementary conditions with unprotected work between them."""
    for root in analysis.roots:
        if not root.contents.by_rank or not root.contents.ops:
            continue
        for tree, path in blocks(root.tree):
            for (opening, first), (closing, second), work in _pairs(root, tree):
                message = (
                    f"`{second.text}` is skipped when {work} raises on the rank that goes first; "
                    f"the others wait in `{first.text}`"
                )
                calls = Step(second, path).calls
                marks = (("first", opening), ("second", closing))
                yield finding_at(RULE, second, message, HELP, calls=calls, marks=marks)


def blocks(
    tree: Tree, path: tuple[tuple[Node, str], ...] = ()
) -> Iterator[tuple[Tree, tuple[tuple[Node, str], ...]]]:
    """Every block of a tree with the nodes around it."""
    yield tree, path
    for node in tree:
        for part, child in parts(node):
            yield from blocks(child, (*path, (node, part)))


def _pairs(root: Root, tree: Tree) -> Iterator[tuple[tuple[Branch, Op], tuple[Branch, Op], str]]:
    waiting: tuple[int, Branch, Op] | None = None
    for position, node in enumerate(tree):
        barrier = _guarded_barrier(node)
        if barrier is None:
            continue
        branch, op, _ = barrier
        if waiting is not None and _complementary(waiting[1], branch):
            between = tree[waiting[0] + 1 : position]
            work = _work(root, between, waiting[2], op)
            if work:
                yield waiting[1:], (branch, op), work
            waiting = None
        else:
            waiting = (position, branch, op)


def _guarded_barrier(node: Node) -> tuple[Branch, Op, bool] | None:
    """A branch on the rank that holds nothing but a barrier in one arm, whatever call of the library meets at it."""
    if not isinstance(node, Branch) or not rank_dependent(node.condition):
        return None
    for arm, other, positive in ((node.then, node.orelse, True), (node.orelse, node.then, False)):
        ops = [n for n in every_node(arm) if isinstance(n, Op) and waits(n)]
        if (
            ops
            and all("barrier" in op.name and op.group == ops[0].group for op in ops)
            and not any(isinstance(n, Op) for n in every_node(other))
        ):
            return node, ops[0], positive
    return None


def _complementary(first: Branch, second: Branch) -> bool:
    """Whether each rank takes the barrier of exactly one of two branches."""
    (asked, says), (asked_again, says_again) = _question(first), _question(second)
    if asked == asked_again:
        return says is not says_again
    for world, local in WORLDS:
        for rank in range(world):
            at = Valuation(rank, world, local)
            one, other = _takes(first, at), _takes(second, at)
            if one is None or other is None or one == other:
                return False
    return True


def _question(branch: Branch) -> tuple[Hashable, bool]:
    """What a branch asks, and the answer for which it meets at its barrier."""
    guarded = _guarded_barrier(branch)
    condition, answer = branch.condition, guarded is not None and guarded[2]
    while condition.tag == "expr" and condition.data[0] == "not":
        condition, answer = condition.data[1][0], not answer
    return condition.key, answer


def _takes(branch: Branch, at: Valuation) -> bool | None:
    known = truth(branch.condition, at)
    guarded = _guarded_barrier(branch)
    return None if known is None or guarded is None else known is guarded[2]


def _work(root: Root, between: Tree, first: Op, second: Op) -> str:
    """What may raise between the barriers, in words; empty where nothing does."""
    for node in every_node(between):
        if isinstance(node, (Fallible, Call)):
            return f"`{node.text}`"
    return _yield_between(root, first, second)


def _yield_between(root: Root, first: Op, second: Op) -> str:
    """A yield between two lines of a generator, outside of a try with a finally."""
    if root.function is None or not root.function.scope.has_yield:
        return ""
    protected: set[ast.AST] = set()
    for node in walk(root.function.node):
        if isinstance(node, ast.Try) and node.finalbody:
            protected.update(inner for statement in node.body for inner in walk(statement))
    for node in walk(root.function.node):
        if isinstance(node, ast.Yield) and first.place.row < node.lineno < second.place.row:
            return "" if node in protected else "the caller's block"
    return ""
