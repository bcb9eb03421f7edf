"""
# unwaited-async-collective (SPG603)

## What it does
Finds asynchronous operations whose handle is never waited for, or by some ranks only, handles that are overwritten
before the wait, waits for operations that were called without `async_op=True`, and buffers that are used between the
start and the wait. So it does with asynchronous checkpoints, of which
the last one is often forgotten: the one before is waited for when the next begins, and no next one comes.

## Why is this bad
`async_op=True`, `isend` and `irecv` only start the operation. Until `wait()` has returned, the receiving
buffer holds what it likes, and the sending buffer may still be read: a number written into it goes out in
place of the one that was meant. A handle that is lost is an operation whose end nobody sees; with some
backends it is cancelled when the handle is collected, and the other rank waits.

## Example
```python
import torch.distributed as dist


def exchange(mine, theirs, peer):
    dist.isend(mine, dst=peer)
    request = dist.irecv(theirs, src=peer)
    request.wait()
    return theirs
```

## Use instead
```python
import torch.distributed as dist


def exchange(mine, theirs, peer):
    requests = [dist.isend(mine, dst=peer), dist.irecv(theirs, src=peer)]
    for request in requests:
        request.wait()
    return theirs
```

## Known limits
`async_op` counts where it is written as `True`; a switch in a variable is left alone.
That no rank ever waits is judged inside one function: a handle that is stored in an attribute or passed on is taken to
be waited for elsewhere. A returned one is followed to the callers in the same file, by the function's name. Buffers
are followed through calls, attributes and lists of outputs, views of the whole (`flat.view(2, 4)`) within a block,
views of a part (`flat[:8]`) not at all, and lists of buffers on which a loop begins operations by their name in the
same block. A use counts as too early where every way that leads to it has the operation under way.

## Fix safety
No fix: where the wait belongs decides what overlaps with what.

## References
- [torch.distributed: synchronous and asynchronous
  operations](https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations)
- The MPI Bugs Initiative (MBI): error classes "request life cycle" and "local concurrency"
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..model import Finding
from ..source.unparsing import unparse
from ..source.walking import children, walk
from ..traces.nodes import Event, Op, every_node
from ..values.value import NONE, Place, alternatives
from .registry import rule
from .support_buffers import base_of, first_use, is_read
from .support_flight import WORLD, begun_in, follow
from .support_futures import ASYNC_SAVE, left_at_the_end
from .support_handles import dropped, handing_on, lost_in_rounds
from .support_lists import begun_on_each, used_early
from .support_messages import handles
from .support_trees import Step, finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis, Root

RULE = rule(code="SPG603", name="unwaited-async-collective", severity="error", status="stable", page=__doc__)
LAST = "call `result()` on its future when the training ends: it waits, and raises what went wrong"
HELP = "keep the handle and call `wait()` on it before the buffer is used and before the function ends"
_ALWAYS_ASYNC = frozenset({"isend", "irecv", "batch_isend_irecv", ASYNC_SAVE})
_SENDS = frozenset({"isend"})
_NO_BUFFER = frozenset({"barrier", "batch_isend_irecv", ASYNC_SAVE})
SYNC = "give it `async_op=True`, or drop the wait"
Starts = dict[tuple[int, int, int, int], Op]


def check(analysis: Analysis) -> Iterable[Finding]:
    """Every block that starts an asynchronous operation, read statement by statement."""
    by_file: dict[str, Starts] = {}
    for root in analysis.roots:
        for op in every_node(root.tree, apart=True):
            if isinstance(op, Op) and (op.handle or op.name in _ALWAYS_ASYNC):
                by_file.setdefault(op.place.filename, {})[op.place[1:]] = op
    modules = {root.module.filename: root.module for root in analysis.roots}
    found: list[Finding] = []
    kept: set[Place] = set()
    for filename, starts in sorted(by_file.items()):
        if filename in modules:
            tree = modules[filename].tree
            ends = _synchronised(tree)
            left = {k: op for k, op in starts.items() if not any(k[0] in r for r in ends)}
            kept.update(op.place for op in left.values())
            found.extend(_in_scope(tree, left))
            found.extend(_handed_on(tree, {k: op for k, op in left.items() if op.name != ASYNC_SAVE}))
    yield from found
    rows = {(finding.site.filename, finding.site.start.row) for finding in found}
    for finding in _followed(analysis, kept):
        if (finding.site.filename, finding.site.start.row) not in rows:
            yield finding
    for root in analysis.entry_roots():
        if ASYNC_SAVE in root.contents.ops and not (root.exceeded or root.truncated):
            for step, op in left_at_the_end(root.tree):
                message = f"nothing waits for the last `{op.text}` before the process group is destroyed"
                yield finding_at(RULE, op, message, LAST, calls=step.calls)


def _followed(analysis: Analysis, kept: set[Place]) -> Iterator[Finding]:
    """What is seen along the trace: through calls, attributes and lists, rank by rank."""
    entries = {id(root) for root in analysis.entry_roots()}
    for root in analysis.roots:
        if not root.contents.begins:
            continue
        begun = {place: op for place, op in begun_in(root).items() if place in kept}
        early, left = follow(root, begun) if begun else ([], [])
        for use in early:
            word = "written" if use.event.name == "buffer-written" else "read"
            who = "" if len(use.ranks) == WORLD else f" by rank {use.ranks[0]}"
            message = (
                f"`{use.event.text}`: the buffer is {word}{who} before `{use.op.text}` has been waited for"
            )
            yield finding_at(RULE, use.event, message, HELP, calls=use.calls, reached=use.op)
        for one in left if id(root) in entries else ():
            waits = f"rank {one.waits} waits in `{one.event.text}`"
            message = f"{waits}, and rank {one.never} never waits for `{one.op.text}`"
            yield finding_at(RULE, one.event, message, HELP, calls=one.calls, reached=one.op)
        yield from _no_handle(root)


def _no_handle(root: Root) -> Iterator[Finding]:
    """A wait for an operation that was called without ``async_op=True``: it has ended, and gave None."""
    ended = {n.place: n for n in every_node(root.tree) if isinstance(n, Op) and n.begins is False}
    waits: dict[Place, list[tuple[Step, Event]]] = {}
    for step in root.steps if ended else ():
        node = step.node
        if isinstance(node, Event) and node.name == "wait" and node.receiver is not None:
            waits.setdefault(node.place, []).append((step, node))
    for there in waits.values():
        given = [one for _, node in there for one in alternatives(node.receiver or NONE)]
        places = [place for one in given for place in handles(one)]
        if len(places) == len(given) and all(place in ended for place in places):
            (step, node), op = there[0], ended[places[0]]
            text = f"`{node.text}`: `{op.text}` gives no handle without `async_op=True`, but None"
            yield finding_at(RULE, node, text, SYNC, certainty="definite", calls=step.calls, reached=op)


def _handed_on(tree: ast.AST, starts: Starts) -> Iterator[Finding]:
    """Calls of functions that give a handle back, where nobody takes it."""
    handing = handing_on(tree, lambda value: _started(value, starts))
    if handing:
        for call, op in dropped(tree, handing, _reads):
            text = f"`{unparse(call)}` gives back the handle of `{op.text}`, and nothing waits for it"
            yield _finding(op, call, text)


def _synchronised(tree: ast.AST) -> list[range]:
    """The lines of classes that somewhere wait for the whole device, which ends every operation on it."""
    return [
        range(cls.lineno, (cls.end_lineno or cls.lineno) + 1)
        for cls in walk(tree)
        if isinstance(cls, ast.ClassDef)
        and any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "synchronize"
            and base_of(node.func.value) == "torch"
            and not node.args
            for node in walk(cls)
        )
    ]


def _in_scope(scope: ast.AST, starts: Starts) -> Iterator[Finding]:
    """The blocks of a module or function; nested functions are scopes of their own."""
    reads = _reads(scope)
    for block in _blocks(scope):
        for position, statement in enumerate(block):
            yield from _at(statement, block[position + 1 :], starts, reads)
            yield from _items_used(statement, block[position + 1 :], starts)
    for loop in (node for node in _own(scope) if isinstance(node, (ast.For, ast.AsyncFor, ast.While))):
        for name, value, op in lost_in_rounds(loop, lambda value: _started(value, starts), scope):
            if reads.get(name):
                yield _finding(
                    op, value, f"only the last round's `{name}` is waited for, the handle of `{op.text}`"
                )
    for inner in _own(scope):
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _in_scope(inner, starts)


def _items_used(statement: ast.stmt, rest: list[ast.stmt], starts: Starts) -> Iterator[Finding]:
    """A list of buffers, on each of which an operation was begun, is used before the list of handles is read."""
    begun = begun_on_each(statement, lambda value: _started(value, starts))
    if begun is not None and begun.op.name not in _SENDS:
        use = used_early(begun, rest, lambda value: _started(value, starts))
        if use is not None:
            message = f"the items of `{begun.base}` are used before `{begun.op.text}` has been waited for"
            yield _finding(begun.op, use, message)


def _at(
    statement: ast.stmt, rest: list[ast.stmt], starts: Starts, reads: dict[str, int]
) -> Iterator[Finding]:
    if isinstance(statement, ast.Expr):
        op = _started(statement.value, starts)
        if op is not None:
            yield _finding(
                op, statement.value, f"the handle of `{op.text}` is dropped: nothing waits for the operation"
            )
        yield from _appended(statement.value, starts, reads)
    for name, value in _assigned(statement):
        op = _started(value, starts)
        if op is None:
            continue
        lost = _fate(name, rest)
        if lost == "overwritten":
            yield _finding(op, value, f"`{name}` is overwritten before anything waits for `{op.text}`")
        elif not reads.get(name):
            yield _finding(op, value, f"nothing waits for `{name}`, the handle of `{op.text}`")
        else:
            yield from _buffer_used(op, value, name, rest)


def _appended(value: ast.expr, starts: Starts, reads: dict[str, int]) -> Iterator[Finding]:
    """``handles.append(start(...))`` of a list that nothing reads."""
    if not (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "append"
    ):
        return
    if not isinstance(value.func.value, ast.Name) or not value.args:
        return
    op = _started(value.args[0], starts)
    name = value.func.value.id
    if op is not None and not reads.get(name):
        yield _finding(
            op, value.args[0], f"`{name}` keeps the handle of `{op.text}`, and nothing waits for it"
        )


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement binds, each with its own value."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        if isinstance(value, (ast.List, ast.Tuple)):
            yield from ((target.id, item) for item in value.elts)
        else:
            yield target.id, value
    elif (
        isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    ):
        for one, item in zip(target.elts, value.elts, strict=True):
            if isinstance(one, ast.Name):
                yield one.id, item


def _started(value: ast.expr, starts: Starts) -> Op | None:
    if not isinstance(value, ast.Call):
        return None
    ends = value.end_lineno or 0, value.end_col_offset or 0
    op = starts.get((value.lineno, value.col_offset, *ends))
    if op is None or op.name in _ALWAYS_ASYNC:
        return op
    switch = next((keyword.value for keyword in value.keywords if keyword.arg == "async_op"), None)
    return op if isinstance(switch, ast.Constant) and switch.value else None


def _fate(name: str, rest: list[ast.stmt]) -> str:
    """Whether a name is bound anew in the same block before anything reads it."""
    for statement in rest:
        if any(is_read(node, name) for node in walk(statement)):
            return "read"
        if isinstance(statement, ast.Assign) and any(
            isinstance(node, ast.Name) and node.id == name
            for target in statement.targets
            for node in walk(target)
        ):
            return "overwritten"
    return ""


def _buffer_used(op: Op, start: ast.expr, handle: str, rest: list[ast.stmt]) -> Iterator[Finding]:
    """The buffer is written (a send) or touched at all (a receive) before the handle is next read."""
    assert isinstance(start, ast.Call)
    buffer = next(
        (a for a in [*start.args[:1], *(k.value for k in start.keywords if k.arg == "tensor")]), None
    )
    if isinstance(buffer, ast.Name) and op.name not in _NO_BUFFER:
        used = first_use(buffer.id, handle, rest, reads=op.name not in _SENDS)
        if used is not None:
            word = "written" if op.name in _SENDS else "used"
            yield _finding(op, used.node, f"`{used.name}` is {word} before `{op.text}` has been waited for")


def _reads(scope: ast.AST) -> dict[str, int]:
    """How often each name is read in a scope, nested functions included; ``x.append`` is no reading of x."""
    found: dict[str, int] = {}
    skipped: set[ast.AST] = set()
    for node in walk(scope):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            func = node.value.func
            if isinstance(func, ast.Attribute) and func.attr == "append":
                skipped.add(func.value)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in skipped:
            found[node.id] = found.get(node.id, 0) + 1
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(dict.fromkeys(node.names, 1))
    return found


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without the insides of nested functions."""
    stack = list(children(scope))
    while stack:
        node = stack.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack[:0] = children(node)


def _blocks(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements that belongs to a scope itself."""
    for node in (scope, *_own(scope)):
        if node is not scope and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _finding(op: Op, at: ast.AST, message: str) -> Finding:
    place = Place(
        op.place.filename,
        getattr(at, "lineno", op.place.row),
        getattr(at, "col_offset", op.place.column),
        getattr(at, "end_lineno", None) or op.place.end_row,
        getattr(at, "end_col_offset", None) or op.place.end_column,
    )
    return finding_at(RULE, Op(place, op.name, op.kind, None, op.text), message, HELP, reached=op)
