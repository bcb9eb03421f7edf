"""
# read-before-barrier (SPG503)

## What it does
Finds files and folders that one rank makes and another rank uses, with no collective in between; and those that
one rank removes or renames while others may still be at them, or may still look for them.

## Why is this bad
Nothing orders the two: the other rank may come first, and finds no folder, or half a file. On one machine the
job runs a hundred times before it fails; on a shared file system it fails on the first busy day. A pause
(`time.sleep`) orders nothing either. A folder that only global rank 0 makes does not exist on the other hosts
where each host has its own disk.

## Example
```python
import os

import torch
import torch.distributed as dist

def save(folder, shard):
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
    torch.save(shard, os.path.join(folder, f"shard-{dist.get_rank()}.pt"))
    dist.barrier()
```

## Use instead
```python
import os

import torch
import torch.distributed as dist

def save(folder, shard):
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
    dist.barrier()
    torch.save(shard, os.path.join(folder, f"shard-{dist.get_rank()}.pt"))
    dist.barrier()
```

## Known limits
Paths are compared by the expressions that make them; the same file by two names is not seen. A rank that
waits for the file itself (`while not path.exists()`), or only uses it if it is there, is taken to know what
it does; but for one that keeps in an attribute whether it was there, where a branch with collectives asks for that.

## Fix safety
No fix: a barrier changes what the ranks do.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import RANKS, READS, WRITES, Access, chain, components, inside, polls, shared
from ..traces.nodes import Branch, Call, Jump, Node, Try
from ..traces.paths import catches_all
from ..traces.where import Where
from ..values.evaluate import rank_dependent
from ..values.value import FALSE, TRUE, Place
from .support_events import finding, reading
from .support_noticed import noticed_by_some
from .support_polling import taken_unseen

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding
    from ..values.value import Value

RULE = rule(code="SPG503", name="read-before-barrier", severity="warning", status="stable", page=__doc__)

_FOLDERS = ("save_pretrained", "save_to_disk")
_PATHS = ("const", "expr", "sym", "extobj")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report uses of what another rank makes, where no collective orders the two."""
    for root in reading(analysis):
        events = root.contents.events
        if root.contents.by_rank and events & (WRITES | {"open", "remove"}) and len(events) > 1:
            yield from _races(root)
            yield from _taken_away(root)
            yield from _taken_unseen(root)
            yield from _noticed(analysis, root)


def _taken_away(root: Root) -> Iterator[Finding]:
    """What one rank removes or renames, while others may not have read or written it yet."""
    found = root.accesses
    for taker in found:
        if taker.kind not in ("remove", "rename") or not 0 < len(taker.ranks) < len(RANKS):
            continue
        taken = [components(v) for v in taker.values[:1] if shared(v) and v.tag in _PATHS]
        for use in found:
            before = use.index < taker.index and use.kind in READS | {"write"}
            if not before or not any(inside(path, used) for path in taken for used in use.paths):
                continue
            racing = use.races(taker)
            if racing and not polls(use.where) and not expects_absence(use):
                taking, using = taker.node.text, use.node.text
                node, where, within = _shown(taker)
                yield finding(
                    RULE,
                    node,
                    f"`{taking}` may come before `{using}` of another rank: no collective stands between them",
                    "put a barrier, or the agreement on errors, before the file is taken away",
                    steps=[(use.node.place, f"`{using}` runs on other ranks too"), *within],
                    where=where,
                    diverging=(taking,),
                    others=(f"{using}  # may come later",),
                )
                break


def _taken_unseen(root: Root) -> Iterator[Finding]:
    """What tells the other ranks that something is done, taken away before they are sure to have seen it."""
    for taker, poll in taken_unseen(root):
        taking, asking = taker.node.text, poll.node.text
        yield finding(
            RULE,
            taker.node,
            f"`{taking}` may come before `{asking}` of another rank has seen the file: it then waits for ever",
            "put a barrier before the file is taken away",
            steps=[(poll.node.place, f"`{asking}` is asked until the file is there")],
            where=taker.where,
            diverging=(taking,),
            others=(f"{asking}  # may come later, and for ever",),
        )


def _noticed(analysis: Analysis, root: Root) -> Iterator[Finding]:
    """What some ranks find there and others do not yet, where that decides about collectives later."""
    for maker, look, attribute, branch in noticed_by_some(analysis, root, made):
        asking, making = look.node.text, maker.node.text
        yield finding(
            RULE,
            look.node,
            f"`{asking}` may come before `{making}` of another rank: `{attribute}` then differs between the ranks",
            "put a barrier between making and looking, or let one rank look and tell the others",
            steps=[
                (maker.node.place, f"`{making}` runs on some ranks only"),
                (branch.place, f"`{branch.text}` decides about collectives"),
            ],
            where=look.where,
            diverging=(making,),
            others=(f"{asking}  # may come first",),
        )


def _shown(taker: Access) -> tuple[Node, Where | None, list[tuple[Place, str]]]:
    """Where the barrier is missing: before the call that the rank lets through, or before the removal itself."""
    within: list[Where] = []
    for w in chain(taker.where):
        if isinstance(w.node, Branch) and rank_dependent(w.node.condition):
            if not within:
                break
            call, inner = within[-1], [(taker.node.place, f"`{taker.node.text}` takes it away")]
            return call.node, call.outer, inner
        if isinstance(w.node, Call):
            within.append(w)
    return taker.node, taker.where, []


def _races(root: Root) -> Iterator[Finding]:
    found = root.accesses
    makers = [a for a in found if a.kind in WRITES and 0 < len(a.ranks) < 4 and made(a) and goes_on(a)]
    if not makers:
        return
    reported: set[Access] = set()
    for use in found:
        if use.kind == "remove" or polls(use.where) or expects_absence(use) or makes_its_own(use):
            continue
        for maker in makers:
            before = maker.index < use.index and maker.node.place != use.node.place
            if before and maker not in reported and _unordered(maker, use, found):
                reported.update(other for other in makers if set(made(other)) & set(made(maker)))
                yield _report(maker, use)
                break


def goes_on(maker: Access) -> bool:
    """Whether the rank that makes something goes on with the others instead of leaving there."""
    for w in chain(maker.where):
        if isinstance(w.node, Call):
            return True
        if isinstance(w.node, Branch):
            arm = w.node.then if w.part == "then" else w.node.orelse
            if any(isinstance(node, Jump) and node.kind in ("return", "raise", "exit") for node in arm):
                return False
    return True


def _unordered(maker: Access, use: Access, found: list[Access]) -> bool:
    # a tree is copied together with the folders above its destination
    needed = use.paths[:1] if use.node.call.endswith("copytree") and maker.kind == "mkdir" else use.paths
    if not any(touches(maker, path, use) for path in needed):
        return False
    others = use.ranks - maker.ranks
    racing = use.races(maker)
    if not racing and not _other_host(maker, use):
        return False
    return not any(made_by_itself(access, maker, use, others) for access in found)


def _other_host(maker: Access, use: Access) -> bool:
    """Global rank 0 makes what the first rank of each host uses."""
    return maker.ranks == {0} and use.ranks == {0, 2} and maker.kind == "mkdir"


def made_by_itself(access: Access, maker: Access, use: Access, others: set[int]) -> bool:
    """Whether the using rank has made the same thing itself before."""
    return (
        access is not maker
        and access.kind in WRITES
        and access.index < use.index
        and others <= access.ranks
        and any(path in made(access) for path in made(maker))
    )


def made(access: Access) -> list[tuple[object, ...]]:
    """The paths that exist once the access is done, where every rank computes the same."""
    values = access.values
    if access.kind == "rename" and len(values) > 1:
        values = values[1:2]
    return [
        path
        for value in values
        if shared(value) and _may_be_path(value) and plausible(path := components(value))
    ]


def _may_be_path(value: Value) -> bool:
    """Whether an argument can be a path; a switch (``exist_ok=True``) or a number is none."""
    return value.tag in _PATHS and (value.tag != "const" or isinstance(value.data[0], (str, bytes)))


def plausible(path: tuple[object, ...]) -> bool:
    """Whether components can be those of a path: not a lone word such as a mode or a number."""
    return len(path) > 1 or not isinstance(path[0], str) or "." in path[0]


def touches(maker: Access, path: tuple[object, ...], use: Access) -> bool:
    """Whether the use needs what was made: the file itself, something in the folder, or the folder's list."""
    for made_path in made(maker):
        if maker.kind == "mkdir" and inside(made_path, path):
            return True
        if use.kind in READS and (made_path == path or (use.kind == "list" and inside(path, made_path))):
            return True
        whole = maker.kind == "rename" or maker.node.call.endswith(_FOLDERS)
        if whole and use.kind in READS and inside(made_path, path):
            return True
    return False


def makes_its_own(use: Access) -> bool:
    """Whether a use makes a folder with all above it, and accepts those that are there: it may come first or second."""
    if use.kind != "mkdir":
        return False
    keywords = use.node.keywords
    accepts = keywords.get("exist_ok", FALSE).key == TRUE.key
    parents = use.node.call.endswith("makedirs") or keywords.get("parents", FALSE).key == TRUE.key
    return accepts and parents


def expects_absence(use: Access) -> bool:
    """Whether the code around a use handles that there may be no such file."""
    for w in chain(use.where):
        if isinstance(w.node, Try) and w.part == "body":
            names = {name for handler in w.node.handlers for name in handler.names}
            if names & {"OSError", "FileNotFoundError", "IOError"} or any(map(catches_all, w.node.handlers)):
                return True
    return False


def _report(maker: Access, use: Access) -> Finding:
    making, using = maker.node.text, use.node.text
    return finding(
        RULE,
        use.node,
        f"`{using}` may come before `{making}` of another rank: no collective stands between them",
        "put a barrier, or the agreement on errors, between making and using",
        steps=[(maker.node.place, f"`{making}` runs on some ranks only")],
        where=use.where,
        diverging=(making,),
        others=(f"{using}  # may come first",),
    )
