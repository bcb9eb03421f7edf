"""
# collective-in-exception-path (SPG206)

## What it does
Finds collectives in an `except` or `finally` block that runs on the rank that failed while the others are
still inside the try body, and in a hook that an uncaught exception calls: `on_exception` of a Lightning callback,
`sys.excepthook`. So it does in an `__exit__` that runs where the block has raised: in the arm that asks for the
exception, and in what it does either way where the other ranks are still inside the block.

## Why is this bad
A barrier "to be safe" in the handler is the surest way to hang: the failed rank waits in it, the others
wait in the collective of the try body, and the exception that would explain everything is not printed,
since the handler never ends. In a `finally` block the same barrier looks harmless, because on the good
path it is. `destroy_process_group()` in `finally` does the same on NCCL, where it waits for work in
flight; alone it is reported as a warning.

## Example
```python
import torch.distributed as dist


def run(trainer):
    try:
        trainer.fit()
        dist.all_reduce(trainer.total)
    finally:
        dist.barrier()
```

## Use instead
```python
import torch.distributed as dist


def run(trainer):
    trainer.fit()
    dist.all_reduce(trainer.total)
    dist.barrier()
```

On the way out after an error no rank may wait for another: leave, and let the launcher end the rest.
`spmdguard.run` is that order ready made.

## Known limits
A `finally` block around work without collectives (reading a file that another rank may delete afterwards)
is right: every rank comes there, failed or not. So is a handler whose collective is met by the others as
well.

## Fix safety
An operation in a `finally` block is moved behind the `try` statement, where nothing but an exception skips what
follows. Safe for the last statement of the block; unsafe for others, which then run later than their
successors. An operation in an `except` clause or a hook has no fix.

## References
- [pytorch/torchtitan#1342](https://github.com/pytorch/torchtitan/pull/1342): `destroy_process_group` in
  `finally` blocks after a failure on some ranks
- [pytorch/pytorch#75097](https://github.com/pytorch/pytorch/issues/75097): the same outside of an
  exception path
- SPG604 (barrier-on-emergency-path) is this rule: a barrier behind a failure is no less one in a guarded run
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.divergence import variance
from ..traces.doubts import obeys
from ..traces.joined import is_joined
from ..traces.nodes import Branch, Fallible, Jump, Loop, Node, Op, Tree, Try, every_node
from .registry import rule
from .support import from_divergence, operation_text
from .support_claims import RANK_KINDS, claimed, meets_in_handler
from .support_exits import first_on_failure, on_failure
from .support_hooks import failure_roots
from .support_trees import Step, finding_at, parts, shown, steps, waits

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..traces.divergence import Divergence
    from ..values.value import Place

RULE = rule(
    code="SPG206",
    name="collective-in-exception-path",
    severity="error",
    status="stable",
    page=__doc__,
    fix="safe",
)
HELP_HOOK = "save in a hook that all ranks run (the end of an epoch), and only write to the log here"
HELP = "move it behind the `try`: on the way out of an error a rank waits for no other"


HELP_EXIT = "do it where `exc_type is None`: on the way out of an error a rank waits for no other"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Operations in handlers that the other ranks do not meet, then those in finally blocks."""
    for divergence in claimed(analysis.divergences, RULE.code):
        yield _in_handler(divergence)
    for root, hook in failure_roots(analysis):
        yield from _in_hook(root.tree, hook)
    led: set[Place] | None = None
    for root in analysis.roots:
        if not root.contents.ops:
            continue
        for step in root.steps:
            if isinstance(step.node, Try) and step.node.final:
                if step.node.form != "try":
                    yield from _in_exit(step, step.node)
                    continue
                led = _led(analysis) if led is None else led
                yield from _in_finally(step, step.node, led)


def _in_hook(tree: Tree, hook: str) -> Iterator[Finding]:
    """The first operation of a function that a failing rank runs alone."""
    for step in steps(tree):
        op = step.node
        if not isinstance(op, Op) or not waits(op) or op.name == "destroy_process_group":
            continue
        if any(isinstance(node, Branch) and "Interrupt" in node.text for node, _ in step.path):
            continue  # every rank is interrupted
        where = shown(step)
        message = f"`{getattr(where, 'text', '')}` runs only on the rank whose exception has called `{hook}`"
        yield finding_at(RULE, where, message, HELP_HOOK, calls=step.calls, reached=op)
        return


def _in_handler(divergence: Divergence) -> Finding:
    met = meets_in_handler(divergence) if divergence.shape == "swallow" else None
    text = met.text if met is not None else divergence.text
    operation = operation_text(divergence)
    reaches = "" if met is not None or operation == text else f" reaches `{operation}` and"
    message = f"`{text}`{reaches} runs only on the rank whose exception `{divergence.condition_text}` caught"
    return from_divergence(RULE, divergence, message, HELP, place=None if met is None else met.place)


def _led(analysis: Analysis) -> set[Place]:
    """The try statements of a rank that leads: the others do what they are told, until they are told to stop."""
    found: set[Place] = set()
    for root in analysis.roots:
        for node in every_node(root.tree) if root.contents.ops else ():
            if not isinstance(node, Branch) or not _by_rank(node):
                continue
            for leader, follower in ((node.then, node.orelse), (node.orelse, node.then)):
                if obeys(follower, leader):
                    found.update(inner.place for inner in every_node(leader) if isinstance(inner, Try))
    return found


def _in_finally(step: Step, node: Try, led: set[Place]) -> Iterator[Finding]:
    """The first operation of a finally block that a failed rank runs while others are in the body."""
    for inner in steps(node.final):
        op = inner.node
        if not isinstance(op, Op) or not waits(op):
            continue
        teardown = op.name == "destroy_process_group"
        failing = failure_before_operation(node.body, certain=teardown)
        if failing is not None:
            fault, awaited = failing
            if op.name == awaited.name and node.place in led:
                return  # the next that the others hear is that they are to stop
            message = (
                f"`{op.text}` in `finally` also runs on a rank where `{getattr(fault, 'text', '')}` fails, "
                f"while the others wait in `{awaited.text}`"
            )
            where = shown(inner)
            calls = [*step.calls, *inner.calls]
            met = [("operation", shown(other)) for other in steps(node.final) if isinstance(other.node, Op)]
            found = finding_at(RULE, where, message, HELP, calls=calls, reached=op, marks=met)
            # with gloo the group is gone at once, with NCCL it may wait: no error for certain
            yield dataclasses.replace(found, severity="warning") if teardown else found
        return


def _in_exit(step: Step, node: Try) -> Iterator[Finding]:
    """The first operation that the exit of a with statement runs only where the block has raised on this rank."""
    if not any(waits(inner) for inner in every_node(node.body)):
        return
    for inner in steps(on_failure(node.final)):
        op = inner.node
        if isinstance(op, Op) and waits(op) and op.name != "destroy_process_group":
            message = f"`{op.text}` runs only on the rank whose block in the `with` statement has raised"
            yield finding_at(RULE, op, message, HELP_EXIT, calls=step.calls)
            return
    yield from _in_every_exit(step, node)


def _in_every_exit(step: Step, node: Try) -> Iterator[Finding]:
    """The first operation of an exit that does not ask whether the block has raised."""
    op = first_on_failure(node.final)
    failing = failure_before_operation(node.body, certain=False)
    if op is None or op.name == "destroy_process_group" or failing is None:
        return
    fault, awaited = failing
    message = (
        f"`{op.text}` in the exit of a `with` block also runs on a rank where "
        f"`{getattr(fault, 'text', '')}` fails, while the others wait in `{awaited.text}`"
    )
    yield finding_at(RULE, op, message, HELP_EXIT, calls=step.calls)


def failure_before_operation(tree: Tree, *, certain: bool) -> tuple[Node, Op] | None:
    """Something that may fail on one rank alone, and an operation that the other ranks come to after it.

    ``certain`` asks for more than a call of something unknown: a raise under a rank-varying condition, a file
    or the network.
    """
    found = _scan(tree, None, certain)
    return found if isinstance(found, tuple) else None


def _scan(tree: Tree, fault: Node | None, certain: bool) -> tuple[Node, Op] | Node | None:
    """Read a tree in execution order; gives the pair, or the first fault for what follows."""
    for index, node in enumerate(tree):
        if (
            isinstance(node, Op)
            and fault is not None
            and waits(node)
            and node.name != "destroy_process_group"
        ):
            return fault, node
        if isinstance(node, Fallible) and (node.io or not certain):
            fault = fault or node
        if isinstance(node, Branch) and fault is None and not is_joined(tree, index):
            fault = _raises(node)
        if isinstance(node, Try) and node.handlers:
            continue
        for _part, child in parts(node):
            found = _scan(child, fault, certain)
            if isinstance(node, Branch) and _by_rank(node) and isinstance(found, tuple):
                found = found[0]  # what only some ranks call is not what all the others wait in
            if not isinstance(found, tuple) and found is not None and isinstance(node, Loop):
                found = _scan(child, found, certain)
            if isinstance(found, tuple):
                return found
            fault = fault or found
    return fault


def _raises(branch: Branch) -> Node | None:
    """A raise that a rank-varying condition decides on."""
    if not variance(branch.condition.taint):
        return None
    for arm in (branch.then, branch.orelse):
        for node in every_node(arm):
            if isinstance(node, Jump) and node.kind == "raise":
                return node
    return None


def _by_rank(branch: Branch) -> bool:
    """Whether the rank decides which arm is taken."""
    return any(taint.kind in RANK_KINDS for taint in branch.condition.taint)
