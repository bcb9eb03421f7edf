"""
# checkpoint-phase-order (SPG501)

## What it does
Finds the last step of a checkpoint (the pointer to the latest one is moved, folders are renamed, old ones are
removed) that is taken while an asynchronous save is still writing.

## Why is this bad
`async_save` returns at once; the files are complete when its result has been waited for. A job that is killed
in between restarts from a pointer to half a checkpoint, and the older one that was whole has been removed.

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
Waiting is a call of `result()`, `wait()` or a method with such a name. Errors of these steps are SPG201.

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

from ..traces.files import components, file_of, writes
from ..traces.nodes import Call, Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where, calls_of
from .support_events import finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(code="SPG501", name="checkpoint-phase-order", severity="warning", status="stable", page=__doc__)
_WAITS = (".result()", ".wait()", ".join()", "wait_", "finish", "finalize", "synchronize", "flush")
_STEPS = frozenset({"rename", "remove"})
_POINTERS = ("latest", "last_checkpoint", "newest")
_LINKS = ("symlink", "hardlink", "link(")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report final steps of a checkpoint that do not wait for its save."""
    for root in reading(analysis):
        contents = root.contents
        if any("async_save" in name for name in contents.ops) and contents.events & (
            _STEPS | {"write", "open"}
        ):
            walk = _Saves()
            walk.run(root.tree, "")
            yield from walk.found.values()


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

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}

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
