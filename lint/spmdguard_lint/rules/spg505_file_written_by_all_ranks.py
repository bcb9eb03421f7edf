"""
# file-written-by-all-ranks (SPG505)

## What it does
Finds one file or folder that every rank writes, renames or removes, or the first rank of each host on a file system
that hosts share, and folders that every rank makes without `exist_ok`.

## Why is this bad
The ranks do it at the same time. A checkpoint written by several processes is a mixture of their bytes; of
several renames or removals of the same folder the first succeeds, and the others raise, or remove what has
just been made.

## Example
```python
import torch
import torch.distributed as dist

def train(model, steps):
    for step in range(steps):
        loss = model(step)
        dist.all_reduce(loss)
        torch.save(model.state_dict(), "/checkpoints/latest.pt")
```

## Use instead
```python
import torch
import torch.distributed as dist

def train(model, steps):
    for step in range(steps):
        loss = model(step)
        dist.all_reduce(loss)
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), "/checkpoints/latest.pt")
```

or give each rank a name of its own.

## Known limits
Reported where the path is certainly the same on all ranks: made of constants, or of what other code of the
function treats as common (a file in it that one rank alone writes, or one per rank; what is removed stands in a folder
where that is so). Work whose errors are kept for later is reported only on the latter ground, and only where it
writes. Logs opened to be appended to are left alone. A folder on a disk of each host's
own is told from a shared one by names alone (`shared`, `nfs`, `lustre`): of the first rank of each host nothing else is
reported.

## Fix safety
No fix.

## References
- `spmdguard.is_main_process`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import Access, appends, chain, components, in_open_file, inside, polls, shared
from ..traces.nodes import Branch, Call, Op, Try
from ..traces.where import calls_of
from ..values.value import Value, parts_of
from .support_events import deferral, finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding

RULE = rule(
    code="SPG505", name="file-written-by-all-ranks", severity="warning", status="stable", page=__doc__
)
_GUARDS = (
    "main",
    "master",
    "rank",
    "zero",
    "primary",
    "leader",
    "chief",
    "coordinator",
    "should",
    "writer",
    "save",
)
_MISSING = frozenset({"FileNotFoundError", "OSError", "IOError"})
_LISTS = ("listdir", "glob", "iterdir", "scandir", "walk")
_FIRST_OF_HOSTS = {0, 2}  # in the world of two hosts in which accesses are read
_OF_HOSTS = re.compile(
    r"(?:^|[^a-z])(?:shared|nfs|lustre|gpfs|beegfs|panfs|cephfs|fsx|efs|wekafs)(?:[^a-z]|$)", re.IGNORECASE
)
_VERBS = {"write": "writes", "rename": "renames", "remove": "removes"}


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report writes, renames and removals that every rank makes of one path."""
    for root in reading(analysis):
        contents = root.contents
        if contents.events & {"write", "rename", "remove", "open"} and (contents.by_rank or contents.ops):
            yield from _shared_changes(root)
            yield from _by_each_host(root)
        if "mkdir" in contents.events and (contents.by_rank or contents.ops):
            yield from _folders(root)


def _folders(root: Root) -> Iterator[Finding]:
    """Folders that every rank makes, though all but the first find them there."""
    found = root.accesses
    for access in found:
        value = access.values[0] if access.values else None
        if access.kind != "mkdir" or len(access.ranks) < 4 or value is None or tolerant(access):
            continue
        if value.taint or not shared(value) or not access.node.call.endswith(("mkdir", "makedirs")):
            continue
        constant = constant_path(value) and communicates(root, access)
        if constant or treated_as_common(value, access, found):
            yield finding(
                RULE,
                access.node,
                f"every rank makes the same folder in `{access.node.text}`, and all but the first may raise",
                "pass `exist_ok=True`, or let one rank make it, with a barrier behind",
                where=access.where,
            )


def tolerant(access: Access) -> bool:
    """Whether a folder may be there already, or one rank alone, or a handler, sees to it."""
    allowed = access.node.keywords.get("exist_ok")
    if allowed is not None and not (allowed.tag == "const" and not allowed.data[0]):
        return True
    return "exist_ok" in access.node.text or deferral(access.where) is not None or not alone(access)


def alone(access: Access) -> bool:
    """Whether nothing around an access picks a rank, or tolerates that another was first."""
    for w in chain(access.where):
        if isinstance(w.node, Branch) and (
            any(word in w.node.text.lower() for word in _GUARDS)
            or any(taint.kind in ("rank", "group-rank") for taint in w.node.condition.taint)
        ):
            return False
        if isinstance(w.node, Try) and w.part == "body" and w.node.handlers:
            return False
    return not ((polls(access.where) or _was_missing(access)) and in_turns(access))


def _was_missing(access: Access) -> bool:
    """Whether an access stands in a clause that catches what a missing file raises."""
    return any(
        w.handler is not None and not _MISSING.isdisjoint(w.handler.names) for w in chain(access.where)
    )


def in_turns(access: Access) -> bool:
    """Whether some ranks come to an access before a barrier and others behind it."""
    return len({frozenset(phases) for phases in access.phases.values()}) > 1


def _shared_changes(root: Root) -> Iterator[Finding]:
    found = root.accesses
    done: set[tuple[Call, ...]] = set()
    for access in found:
        if access.kind not in _VERBS or len(access.ranks) < 4 or not unguarded(access):
            continue
        calls = calls_of(access.where)
        if calls in done or not (listed(access) or is_common(root, access, found)):
            continue
        done.add(calls)
        yield finding(
            RULE,
            access.node,
            f"every rank {_VERBS[access.kind]} the same path in `{access.node.text}`",
            "let one rank do it, with a barrier behind, or give each rank a path of its own",
            where=access.where,
        )


def _by_each_host(root: Root) -> Iterator[Finding]:
    """Files of a file system that hosts share, by its name, which the first rank of each host writes."""
    done: set[tuple[Call, ...]] = set()
    for access in root.accesses:
        calls = calls_of(access.where)
        if access.kind not in _VERBS or access.ranks != _FIRST_OF_HOSTS or calls in done:
            continue
        moved_to = [v for v in access.values[1:2] if shared(v) and not v.taint and access.kind == "rename"]
        changed = changed_path(access)
        paths = moved_to or ([] if changed is None else [changed])
        name = next((word for path in paths for word in _words(path) if _OF_HOSTS.search(word)), None)
        if name is None or appends(access.node) or in_open_file(access.node):
            continue
        done.add(calls)
        yield finding(
            RULE,
            access.node,
            f"the first rank of each host {_VERBS[access.kind]} the same path in `{access.node.text}`: "
            f"`{name}` is shared",
            "let one rank of the whole job do it (`dist.get_rank() == 0`), not one of each host",
            where=access.where,
        )


def _words(path: Value) -> Iterator[str]:
    """The texts and names of which a path is made: constants, variables of the environment, parameters, attributes."""
    for part in parts_of(path):
        if part.tag == "const" and isinstance(part.data[0], str):
            yield part.data[0]
        elif part.tag == "sym" and isinstance(part.data[0], tuple) and isinstance(part.data[0][-1], str):
            yield part.data[0][-1]
        elif part.tag == "expr" and part.data[0].startswith("attr:"):
            yield part.data[0][5:]


def is_common(root: Root, access: Access, found: list[Access]) -> bool:
    """Whether the path is the same on all ranks, and meant to be."""
    path = changed_path(access)
    if path is None:
        return False
    if constant_path(path) and deferral(access.where) is None:
        return communicates(root, access)
    return treated_as_common(path, access, found)


def listed(access: Access) -> bool:
    """Whether ranks that have met remove what each of them finds in a folder."""
    value = access.values[0] if access.values else None
    if access.kind != "remove" or value is None or not value.taint or not shared(value):
        return False
    met = any(isinstance(phase, Op) for seen in access.phases.values() for phase in seen)
    return met and all(any(word in taint.text for word in _LISTS) for taint in value.taint)


def unguarded(access: Access) -> bool:
    """Whether nothing around the access picks a rank, or tolerates that another was first."""
    node = access.node
    if access.kind != "write" and deferral(access.where) is not None:
        return False
    if any(v.tag == "const" and v.data[0] is True for k, v in node.keywords.items() if k != "weights_only"):
        return False
    if appends(node) or in_open_file(node) or "exists" in node.text:
        return False
    return alone(access)


def changed_path(access: Access) -> Value | None:
    """The path that is written, renamed or removed, where every rank computes the same."""
    node = access.node
    candidates = [v for v in access.values if v.tag in ("const", "expr", "extobj", "sym")]
    if access.kind == "write":
        first = node.args[0] if node.args else None
        candidates = [v for v in candidates if v is not first or node.call in ("open", "numpy.save")][:2]
        if node.receiver is not None and node.receiver.tag == "extobj":
            candidates = access.values[:1]
    else:
        candidates = access.values[:1]
    for value in candidates:
        if shared(value) and not value.taint and path_like(value):
            return value
    return None


def path_like(value: Value) -> bool:
    """Whether a value is put together as a path is."""
    parts = components(value)
    if value.tag == "extobj":
        return bool(value.data[0] == "pathlib.Path")
    if value.tag == "const":
        return isinstance(value.data[0], str) and ("/" in value.data[0] or "." in value.data[0])
    return len(parts) > 1


def constant_path(value: Value) -> bool:
    """Whether a path is made of constants and counters, none of them a parameter of the function."""
    head = components(value)[:1]
    return bool(head) and isinstance(head[0], str)


def treated_as_common(value: Value, access: Access, found: list[Access]) -> bool:
    """Whether the ranks share the folder: one rank alone writes in it, or each its own file."""
    path = components(value)
    folder = path if access.kind in ("rename", "mkdir") else path[:-1]
    if not folder:
        return False
    for other in found:
        if other is access or other.kind not in ("write", "mkdir"):
            continue
        alone = 0 < len(other.ranks) < 4
        for other_value, other_path in zip(other.values, other.paths, strict=True):
            own = any(t.kind == "rank" for t in other_value.taint)
            if (alone or own) and len(other_path) > len(folder) and inside(folder, other_path):
                return True
    return False


def communicates(root: Root, access: Access) -> bool:
    """Whether the ranks meet before or after the access: the code runs on all of them."""
    phases = [phase for seen in access.phases.values() for phase in seen]
    return any(isinstance(phase, Op) for phase in phases) or bool(
        root.contents.ops - {"destroy_process_group"}
    )
