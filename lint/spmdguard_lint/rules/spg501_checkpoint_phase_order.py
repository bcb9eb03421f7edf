"""
# checkpoint-phase-order (SPG501)

## What it does
Finds the last step of a checkpoint (the pointer to the latest one is moved, folders are renamed, old ones are
removed, the mark of an unfinished one is taken away) that comes while an asynchronous save is still writing, or while
other ranks are still at their parts; old files that one rank removes, and pointers that it moves, before the ranks have
agreed that all of them have written the new ones, where their errors are kept for later, or caught and told to nobody
(`except OSError: ok = False`, then a barrier); pointers that move although
the thread that has written may have failed; and old checkpoints that are removed before the new one is written.

## Why is this bad
`async_save` returns at once; the files are complete when its result has been waited for. A job that is killed
in between restarts from a pointer to half a checkpoint, and the older one that was whole has been removed. So it is
with a file `latest` that rank 0 writes when its own part is done, and with a checkpoint that makes room for the next:
stopped in between, a job has neither. Of shards written under `deferring` a full disk on one rank is known to that rank
alone until the next agreement. An error in a `Thread` ends that thread, and `join` returns as if nothing had been.

## Example
```python
import os

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

def save(state, folder):
    handle = dcp.async_save(state, checkpoint_id=folder)
    if dist.get_rank() == 0:
        os.replace(folder + ".link", "latest")
    dist.barrier()
    return handle
```

## Use instead
```python
import os

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

def save(state, folder):
    dcp.async_save(state, checkpoint_id=folder).result()
    dist.barrier()
    if dist.get_rank() == 0:
        os.replace(folder + ".link", "latest")
    dist.barrier()
```

or move the pointer when the next save begins, after waiting for this one.

## Known limits
A thread whose target catches anything around the write is taken to tell of it. Waiting is a call of `result()`,
`wait()` or a method with such a name. Errors of these steps are SPG201. A collective other than a barrier between write
and removal, or write and pointer, is taken for an agreement. A file says that a checkpoint is there where its name does
(`latest`, `tracker`, `COMPLETE`), and that it is unfinished likewise (`unfinished`, `incomplete`, `in_progress`). A
removal makes room where it takes the new file's own path or folder, all files of a listing of that folder, or the path
that the function remembers; functions that keep some of the old files are let alone, and a file that is written over
without a removal is not reported.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.checkpoint.html#torch.distributed.checkpoint.state_dict_saver.async_save
- `spmdguard.save_checkpoint`
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import components, file_of, guarded_by_rank, writes
from ..traces.nodes import Branch, Call, Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where, calls_of
from .support_caught import said_of_caught
from .support_events import deferral, finding, reading
from .support_idle import handles_of, says_idle
from .support_phases import SHARDED, marked_early, marks, puts, removed_early
from .support_pointers import pointed_early
from .support_threads import unheard_writes

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding
    from ..values.value import Place

RULE = rule(code="SPG501", name="checkpoint-phase-order", severity="warning", status="stable", page=__doc__)
_WAITS = (".result()", ".wait()", ".join()", "wait_", "finish", "finalize", "synchronize", "flush")
_STEPS = frozenset({"rename", "remove"})
_POINTERS = ("latest", "last_checkpoint", "newest")
_LINKS = ("symlink", "hardlink", "link(")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report final steps of a checkpoint that do not wait for its save."""
    for root in reading(analysis):
        contents = root.contents
        if contents.ops and contents.events & {"write", "rename", "open", SHARDED}:
            yield from _too_early(root)
            yield from _unheard(analysis, root)
            yield from _told_nobody(root)
        if "deferred" in contents.regions and contents.events & {"remove", "rename", "write", "open"}:
            early = marked_early(root.accesses) if contents.by_rank else ()
            shards = _Shards({step.node for step, _ in early})
            shards.run(root.tree, "")
            yield from shards.found.values()
        if any("async_save" in name for name in contents.ops) and contents.events & (
            _STEPS | {"write", "open"}
        ):
            walk = _Saves(analysis)
            walk.run(root.tree, "")
            yield from walk.found.values()


def _unheard(analysis: Analysis, root: Root) -> Iterable[Finding]:
    """Checkpoints that are said to be there although the thread that has written them may have failed."""
    for written, joined, marked in unheard_writes(analysis, root):
        yield finding(
            RULE,
            joined,
            f"`{joined.text}` returns also where `{written.text}` has failed in the thread; "
            f"`{marked.text}` says all the same that the checkpoint is there",
            "keep the thread's error (`ThreadPoolExecutor`, `future.exception()`) and agree on it before",
            steps=[
                (written.place, f"an error of `{written.text}` ends its thread alone"),
                (marked.place, f"`{marked.text}` does not ask for it"),
            ],
        )


def _told_nobody(root: Root) -> Iterable[Finding]:
    """Checkpoints that one rank takes for complete, although another may have caught an error and told nobody."""
    for said in said_of_caught(root):
        handler, written = said.written.handler, said.written.event
        does = "removes the old one" if said.step.name == "remove" else "says that the checkpoint is there"
        yield finding(
            RULE,
            said.step,
            f"`{said.step.text}` {does} also where `{written.text}` has failed on another rank: "
            f"`{handler.text}` goes on, and the barrier tells nobody",
            "agree on whether all ranks have written (`all_reduce` with `MIN`), and only then go on",
            steps=[(written.place, "the part of each rank"), (handler.place, "an error is known here alone")],
            where=said.where,
        )


def _too_early(root: Root) -> Iterable[Finding]:
    """Markers before all parts are there, and old checkpoints that go before the new one has come."""
    if root.contents.by_rank:
        for step, part in marked_early(root.accesses):
            yield finding(
                RULE,
                step.node,
                f"`{step.node.text}` may come before `{part.node.text}` of other ranks is done: no collective stands "
                "between them",
                "put a barrier, or the agreement on errors, before the file that says that the checkpoint is there",
                steps=[(part.node.place, f"`{part.node.text}` writes the part of each rank")],
                where=step.where,
                diverging=(step.node.text,),
                others=(f"{part.node.text}  # may still be writing",),
            )
    for step, put in pointed_early(root):
        yield finding(
            RULE,
            step.node,
            f"`{step.node.text}` names the checkpoint before `{put.node.text}` has put it there",
            "put the checkpoint in its place first, and move the pointer then",
            steps=[(put.node.place, "a job that is stopped in between finds a pointer to nothing")],
            where=step.where,
        )
    if "remove" in root.contents.events:
        for step, write in removed_early(root):
            yield finding(
                RULE,
                step.node,
                f"`{step.node.text}` removes the old checkpoint before `{write.node.text}` has written the new one",
                "write the new one first, under another name (`os.replace` moves it to its place), and remove then",
                steps=[(write.node.place, "a job that is stopped in between has neither")],
                where=step.where,
            )


class _Shards(Walk):
    """State: the write of this rank's part whose error is kept and not yet agreed on, or ""."""

    def __init__(self, early: set[Event]) -> None:
        super().__init__()
        self.early = early
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op):
            return state if node.name == "barrier" else ""
        if not isinstance(node, Event):
            return state
        if isinstance(state, Event) and guarded_by_rank(where):
            if node.name == "remove":
                self._report(node, state, where, "removes files", "remove what is old")
            elif node not in self.early and puts(node) and marks(node):
                self._report(node, state, where, "says that the checkpoint is there", "say so")
        if node.name in ("write", "checkpoint-save") and deferral(where) and not guarded_by_rank(where):
            self.ways.setdefault(node, where)
            return node
        return state

    def _report(self, node: Event, write: Event, where: Where | None, does: str, late: str) -> None:
        calls, writing = calls_of(where), calls_of(self.ways.get(write))
        inner = [call for position, call in enumerate(calls) if writing[position : position + 1] != (call,)]
        shown: Call | Event = inner[0] if inner else node
        if shown in self.found or deferral(self.ways.get(write)) is deferral(where):
            return
        self.found[shown] = finding(
            RULE,
            shown,
            f"`{shown.text}` {does} before the ranks have agreed that `{write.text}` went well on all",
            f"agree first (`sync_should_stop`), and {late} only after a good verdict",
            steps=[
                (write.place, f"an error of `{write.text}` is kept for later"),
                (node.place, "done there"),
            ],
        )


def moves_pointer(node: Event) -> bool:
    """Whether a write makes a link, or a file by whose name the newest checkpoint is found."""
    if any(word in node.text for word in _LINKS):
        return True
    if node.name == "open" and not writes(node):
        return False
    values = [*node.args, *([node.receiver] if node.receiver is not None else [])]
    names = [str(part) for value in values for part in components(file_of(value))]
    return any(word in name for name in names for word in _POINTERS)


class _Saves(Walk):
    """State: the save that may still be writing, or ""."""

    def __init__(self, analysis: Analysis) -> None:
        super().__init__()
        self.analysis = analysis
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}
        self.handles: dict[Place, frozenset[str]] = {}

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        if not isinstance(state, Op):
            return state
        if state.place not in self.handles:
            self.handles[state.place] = handles_of(self.analysis, state.place)
        return "" if says_idle(node, holds, self.handles[state.place]) else state

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op):
            self.ways.setdefault(node, where)
            return node if "async_save" in node.name else state
        if isinstance(node, Event):
            if node.name == "wait":
                return ""
            step = node.name in _STEPS or (node.name in ("write", "open") and moves_pointer(node))
            if step and isinstance(state, Op):
                self._report(node, state, where)
                return ""
        elif any(word in node.text for word in _WAITS):
            return ""
        return state

    def _report(self, node: Event, save: Op, where: Where | None) -> None:
        calls, saving = calls_of(where), calls_of(self.ways.get(save))
        inner = calls[len(saving) :] if calls[: len(saving)] == saving else ()
        shown: Call | Event = inner[0] if inner else node
        if shown in self.found:
            return
        steps = [(save.place, f"`{save.text}` returns before the files are complete")]
        if shown is not node:
            steps.append((node.place, f"`{node.text}` is done there"))
        self.found[shown] = finding(
            RULE,
            shown,
            f"`{shown.text}` does not wait for `{save.text}`, which may still be writing",
            "wait for the save (`.result()`), meet in a barrier, and take the last steps then",
            steps=steps,
        )
