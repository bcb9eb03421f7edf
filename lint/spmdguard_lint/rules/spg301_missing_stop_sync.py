"""
# missing-stop-sync (SPG301)

## What it does
Finds loops that call collectives and keep errors for later (`@rank_local`, `try_or_defer`, `deferring`,
`defer_error`) but never agree on whether to stop, or only once an epoch; and loops that one rank leaves because of its
own error.

## Why is this bad
A kept error that nobody asks for lets training run to its end in an error that is hours old; so does an agreement
whose verdict is thrown away. A rank that asks for itself alone (`if has_deferred_error(): break`) leaves the loop
while the others enter the next collective, and hang in it.

A loop over a `DataLoader` that trains and leaves the agreement to the loop around it goes on for the rest of the epoch
with an error that it keeps, and all that it would have written until then is lost.

The loop that never agrees is a **warning**: it loses time. An exit that one rank's own error decides is an **error**:
it hangs.

## Example
```python
import torch.distributed as dist
from spmdguard import rank_local

@rank_local(only="main")
def log(step):
    with open("log.txt", "a") as out:
        out.write(str(step))

def train(steps, grad):
    for step in range(steps):
        dist.all_reduce(grad)
        log(step)
```

## Use instead
```python
import torch.distributed as dist
from spmdguard import rank_local, sync_should_stop

@rank_local(only="main")
def log(step):
    with open("log.txt", "a") as out:
        out.write(str(step))

def train(steps, grad):
    for step in range(steps):
        dist.all_reduce(grad)
        log(step)
        if sync_should_stop():
            break
```

## Known limits
A loop counts as agreed when it, or a loop around it, asks `sync_should_stop` (or reduces a flag of its own)
and uses the answer; that the answer is used to leave the loop is not proved where it goes through other
objects.

## Fix safety
Unsafe: it adds a collective to every round. The fix ends the loop's body with `if sync_should_stop(): break`, and
puts `if stop_reason(): break` behind it in each loop around in the same function; a loop in a caller is SPG307's.
An exit that one rank's own error decides gets `sync_should_stop(...)` around its condition.

## References
- `spmdguard.sync_should_stop`
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..facts.torch_core import LOADER
from ..source.walking import walk
from ..traces.divergence import variance
from ..traces.nodes import Branch, Event, Jump, Loop, Node, Op, Region, Tree, every_node
from ..values.value import Place, is_at, parts_of
from .support import from_divergence
from .support_claims import owner
from .support_events import comes_from, counts, finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..traces.divergence import Divergence

RULE = rule(
    code="SPG301", name="missing-stop-sync", severity="warning", status="stable", page=__doc__, fix="unsafe"
)
HELP = "end the step with `if sync_should_stop(): break`"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report loops that defer and never agree, and exits that one rank's own error decides."""
    loops = [
        deferral
        for root in reading(analysis)
        if root.contents.defers and root.contents.num_loops
        for deferral in _deferrals(analysis, root.tree)
    ]
    asked = verdict_places(analysis)
    decided = {place for _, around in loops for seen in around for place in seen.decided}
    own = [d for d in analysis.divergences if owner(d) == RULE.code or is_local_verdict(d, asked, decided)]
    for divergence in own:
        message = f"`{divergence.condition_text}` is this rank's own verdict: the other ranks go on"
        if divergence.form == "next":
            message = f"`{divergence.condition_text}` finds nothing where this rank keeps an error; the others go on"
        yield replace(from_divergence(RULE, divergence, message, HELP), severity="error")
    yield from _silent_loops(loops, {divergence.condition_place for divergence in own})


def verdict_places(analysis: Analysis) -> set[Place]:
    """Where a rank asks for the error that it keeps itself."""
    found: set[Place] = set()
    for root in analysis.roots:
        if "deferred-error" not in root.contents.events:
            continue
        stack = [root.tree]
        while stack:
            for node in stack.pop():
                if isinstance(node, Event) and node.name == "deferred-error":
                    found.add(node.place)
                stack.extend(node.subtrees())
    return found


def is_local_verdict(divergence: Divergence, asked: set[Place], decided: set[Place]) -> bool:
    """Whether ranks part because one has an error, in a loop that keeps errors or by asking for one."""
    if divergence.shape not in ("exit", "trip") or divergence.kind != "exception":
        return False
    if divergence.condition_place in decided:
        return True
    return any(taint.place in asked for taint in divergence.taints)


@dataclass
class _Seen:
    """One loop on the way, and what stands in it."""

    node: Loop
    operation: Op | None = None
    results: set[Place] = field(default_factory=set)
    agreed: bool = False
    ignored: Event | None = None
    decided: set[Place] = field(default_factory=set)


Deferral = tuple[Node, tuple[_Seen, ...]]


def _deferrals(analysis: Analysis, tree: Tree) -> list[Deferral]:
    """Where a tree keeps errors, with the loops around."""
    found: list[Deferral] = []
    _scan(analysis, tree, (), found)
    return found


def _silent_loops(deferrals: list[Deferral], reported: set[Place]) -> Iterator[Finding]:
    """The step loops in which an error is kept and nobody agrees on anything."""
    done: set[Place] = set()
    for node, loops in deferrals:
        working = [seen for seen in loops if seen.operation is not None]
        if not working:
            continue
        step = working[-1]
        seldom = any(seen.agreed for seen in loops)
        if seldom and (step.agreed or not _is_epoch(step.node)):
            continue
        if step.node.place in done or reported & (step.decided | {step.node.place}):
            continue
        done.add(step.node.place)
        assert step.operation is not None
        text = getattr(node, "text", "")
        steps = [
            (node.place, f"`{text}` keeps an error of this rank for later"),
            (step.operation.place, f"`{step.operation.text}` is called in every round"),
        ]
        ignored = next((seen.ignored for seen in reversed(loops) if seen.ignored is not None), None)
        message = f"`{step.node.text}` keeps errors for later, and no round ends with an agreement to stop"
        if seldom:
            message = f"`{step.node.text}` keeps errors for later, and only the loop around it agrees to stop"
        if ignored is not None and ignored.place not in done:
            done.add(ignored.place)
            message = f"the verdict of `{ignored.text}` is thrown away: `{step.node.text}` goes on with a kept error"
        yield finding(RULE, ignored or step.node, message, HELP, steps=steps, marks=(("loop", step.node),))


def _is_epoch(loop: Loop) -> bool:
    """Whether a loop trains on all batches of a loader."""
    parts = parts_of(loop.iterated) if loop.iterated is not None else ()
    over_loader = any(part.tag == "extobj" and part.data[0] == LOADER for part in parts)
    return over_loader and any(isinstance(n, Op) and n.name == "backward" for n in every_node(loop.body))


def _scan(analysis: Analysis, tree: Tree, loops: tuple[_Seen, ...], found: list[Deferral]) -> None:
    """Collect the deferrals of a tree with the loops around them; fill in what these loops hold."""
    for node in tree:
        inside = loops
        if isinstance(node, Op) and counts(node):
            _operation(node, loops)
        elif isinstance(node, Region) and node.kind == "deferred":
            if loops and node.body:
                found.append((node, loops))
            continue
        elif isinstance(node, Event):
            if node.name == "defer-error" and loops:
                found.append((node, loops))
            elif node.name == "sync-stop":
                _sync(analysis, node, loops)
        elif isinstance(node, Branch):
            _branch(node, loops)
        elif isinstance(node, Loop):
            inside = (*loops, _Seen(node))
        for child in node.subtrees():
            orelse = isinstance(node, Loop) and child is node.orelse
            _scan(analysis, child, loops if orelse else inside, found)


def _operation(node: Op, loops: tuple[_Seen, ...]) -> None:
    for seen in loops:
        seen.results.add(node.place)
        if seen.operation is None and node.name != "sync_should_stop":
            seen.operation = node


def _sync(analysis: Analysis, node: Event, loops: tuple[_Seen, ...]) -> None:
    used = not is_thrown_away(analysis, node.place)
    for seen in loops:
        if used:
            seen.agreed = True
        else:
            seen.ignored = node


def _branch(node: Branch, loops: tuple[_Seen, ...]) -> None:
    """A loop may be left by an agreement of the user's own: a condition on what a collective gave."""
    for seen in loops:
        seen.decided.add(node.place)
        if seen.results and not variance(node.condition.taint) and comes_from(node.condition, seen.results):
            seen.agreed = seen.agreed or node.form == "while" or _leaves(node)


def _leaves(node: Branch) -> bool:
    stack = [node.then, node.orelse]
    while stack:
        for inner in stack.pop():
            if isinstance(inner, Jump) and inner.kind != "continue":
                return True
            stack.extend(inner.subtrees())
    return False


def is_thrown_away(analysis: Analysis, place: Place) -> bool:
    """Whether nobody reads the result of the call at a place: a statement of its own, or a name never read."""
    for module in analysis.project.all_modules:
        if module.filename == place.filename:
            for node in walk(module.tree):
                if isinstance(node, (ast.Expr, ast.Assign)) and _stands_at(node.value, place):
                    return isinstance(node, ast.Expr) or _is_never_read(module.tree, node)
    return False


def _stands_at(value: ast.expr, place: Place) -> bool:
    return isinstance(value, ast.Call) and is_at(value, place)


def _is_never_read(tree: ast.AST, assignment: ast.Assign) -> bool:
    """Whether a function reads none of the local names that it assigns here."""
    if not all(isinstance(target, ast.Name) for target in assignment.targets):
        return False
    names = {target.id for target in assignment.targets if isinstance(target, ast.Name)}
    owners = [
        node
        for node in walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and any(inner is assignment for inner in walk(node))
    ]
    read = (node for owner in owners[-1:] for node in walk(owner) if isinstance(node, ast.Name))
    shared = any(isinstance(n, (ast.Global, ast.Nonlocal)) for owner in owners for n in walk(owner))
    return bool(owners) and not shared and not any(n.id in names for n in read if isinstance(n.ctx, ast.Load))
