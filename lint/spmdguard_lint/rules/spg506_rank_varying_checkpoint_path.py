"""
# rank-varying-checkpoint-path (SPG506)

## What it does
Finds checkpoints that every rank writes a part of, under a name that each rank makes for itself: from its own loss, its
clock, a random number, or its rank. Also parts of a result that ranks write into a temporary folder which each of them
has made (`tempfile.mkdtemp`), and of which one rank then reads those of the others; checkpoints that one rank alone
writes, of which every rank then reads the one that its own data says; and checkpoints to go on from
(`trainer.train(resume_from_checkpoint=...)`) that each rank looks for under a name of its own drawing, or of which some
ranks know and others do not.

## Why is this bad
The parts belong in one folder. Ranks whose clocks stand on two sides of a second, or whose losses round differently,
write into two folders, and neither holds a whole checkpoint. Nothing fails until somebody loads it. Where each rank
remembers the best epoch by the loss of its own batches, it asks for a file that rank 0 has not written.

## Example
```python
import time

import deepspeed


def save(model, config, out):
    engine, *_ = deepspeed.initialize(model=model, config=config)
    engine.save_checkpoint(out, tag=time.strftime("%H-%M-%S"))
```

## Use instead
A name that all ranks compute alike, from the step for instance, or one that rank 0 has chosen for all:

```python
import time

import deepspeed
import torch.distributed as dist


def save(model, config, out):
    engine, *_ = deepspeed.initialize(model=model, config=config)
    names = [time.strftime("%H-%M-%S")]
    dist.broadcast_object_list(names, src=0)
    engine.save_checkpoint(out, tag=names[0])
```

## Known limits
Nothing in the code proves that the names differ in a run; hence the certainty `likely`. Of files that ranks
write on their own those are judged whose name holds the rank, in a folder that is named by the clock or at
random, or that is a temporary folder from which parts are read by another name than this rank's. Saves in which
the library shares the path of rank 0 (Lightning, Composer) are left alone. So are `output_dir` and the like in a
trainer's arguments.

## Fix safety
No fix: only the author knows what to name a checkpoint by.

## References
- [torch.distributed.checkpoint.save](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..traces.divergence import group_key, variance
from ..traces.files import RANKS, Access, appends, components, in_open_file
from ..traces.nodes import Event, Op
from ..traces.pieces import folders, made_of
from ..traces.where import calls_of
from ..values.evaluate import Valuation, rank_dependent, truth
from ..values.value import NONE, alternatives
from .registry import rule
from .support_events import reading
from .support_trees import WORLDS, Step, finding_at, reaching
from .support_varying import varies

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding
    from ..values.value import Place, Taint, Value

RULE = rule(
    code="SPG506", name="rank-varying-checkpoint-path", severity="error", status="stable", page=__doc__
)
HELP = "name it by what all ranks know alike (the step), or broadcast the name from rank 0"
HELP_RESUME = "broadcast the path that rank 0 has found, or let every rank look for it"
HELP_CHOICE = "choose by a value that all ranks have reduced, or broadcast the choice of the rank that writes"
_CHOOSING = ("data", "random", "time", "exception")
_KINDS = ("rank", "time", "random", "environment", "filesystem", "data")
_OWN_FOLDERS = ("mkdtemp", "mktemp", "TemporaryDirectory")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Names of collective saves, and folders of files that each rank writes."""
    for root in analysis.roots:
        if root.contents.named:
            for step in root.steps:
                if isinstance(step.node, Op) and step.node.paths:
                    yield from _collective(step, step.node)
    for root in reading(analysis):
        if root.contents.events & {"write", "open"} and root.contents.ops:
            yield from _each_its_own(root)
            if root.contents.by_rank:
                yield from _chosen_alone(root)


def _collective(step: Step, op: Op) -> Iterator[Finding]:
    """A save, or a resume, of all ranks whose name each rank makes for itself."""
    saves = "save" in op.name
    kinds = (
        _KINDS if saves else ("random",)
    )  # folders of one host are named by rank, and new ones by the clock
    for value in op.paths:
        named = made_of(value)
        told = tuple(taint for taint in _telling(named) if taint.kind in kinds)
        if told and varies(named, step.path, subgroup=group_key(op) is not None, kinds=kinds) is not None:
            does = "saves its part" if saves else "looks for a checkpoint"
            message = f"each rank makes the name for itself under which `{op.text}` {does}"
            yield finding_at(RULE, op, message, HELP, taints=told[:2], calls=step.calls)
            return
    asked = next((value for value in op.paths if not saves and _on_some_ranks(value, step)), None)
    if asked is not None and group_key(op) is None:
        message = f"some ranks have a checkpoint to go on from in `{op.text}`, and the others are given none"
        taints = variance(asked.taint)[:2]
        yield finding_at(RULE, op, message, HELP_RESUME, certainty="likely", taints=taints, calls=step.calls)


def _on_some_ranks(value: Value, step: Step) -> bool:
    """Whether ranks that come to a call are given nothing, while others there may be given something."""
    if not rank_dependent(value):
        return False
    for world, local in WORLDS:
        ranks = (Valuation(rank, world, local) for rank in range(world))
        given = {truth(value, at) for at in ranks if reaching(step.path, at)}
        if False in given and len(given) > 1:
            return True
    return False


def _telling(value: Value) -> tuple[Taint, ...]:
    """Why ranks may have another name, as far as that counts: what they see of a shared folder is the same."""
    return tuple(
        taint
        for taint in variance(value.taint)
        if taint.kind in _KINDS
        and (taint.kind != "filesystem" or any(word in taint.text for word in _OWN_FOLDERS))
        and taint.certainty != "possible"
    )


def _each_its_own(root: Root) -> Iterator[Finding]:
    """Files that every rank writes under its rank, in a folder named by its clock or at random: one for each."""
    done: set[Place] = set()
    for access in root.accesses:
        told = tuple(t for t in _folder_varies(access) if t.kind != "filesystem" or _collected(root, t))
        if told and told[0].place not in done:
            source = told[0]
            done.add(source.place)
            named = f"each rank names a folder by its own `{source.text}`"
            if source.kind == "filesystem":
                named = f"each rank makes a folder of its own by `{source.text}`"
            message = f"{named}, and `{access.node.text}` puts its part there"
            yield finding_at(
                RULE,
                Event(source.place, "source", source.text),
                message,
                HELP,
                calls=calls_of(access.where),
                reached=access.node,
            )


def _chosen_alone(root: Root) -> Iterator[Finding]:
    """Files that all ranks read, each the one that its own data says, of those that some ranks have written."""
    found = root.accesses
    writers = [a for a in found if a.kind == "write" and 0 < len(a.ranks) < len(RANKS)]
    for use in found if writers else ():
        if use.kind != "read" or len(use.ranks) < len(RANKS):
            continue
        for value in use.values:
            told = tuple(
                t for t in variance(value.taint) if t.kind in _CHOOSING and t.certainty != "possible"
            )
            if told and not rank_dependent(value) and any(_may_be(value, writer) for writer in writers):
                message = f"each rank chooses by its own data which file `{use.node.text}` reads; not every rank writes"
                calls = calls_of(use.where)
                yield finding_at(RULE, use.node, message, HELP_CHOICE, taints=told[:2], calls=calls)
                break


def _may_be(value: Value, writer: Access) -> bool:
    """Whether a path is one of those that an access writes, or of the same folder."""
    ways = [components(one) for one in alternatives(value) if one.key != NONE.key]
    return any(
        len(path) == len(written) and path[:-1] == written[:-1] and (len(path) > 1 or path == written)
        for path in ways
        for written in writer.paths
        if path
    )


def _folder_varies(access: Access) -> tuple[Taint, ...]:
    node = access.node
    if (
        access.kind == "write"
        and len(access.ranks) == len(RANKS)
        and not (appends(node) or in_open_file(node))
    ):
        for value in access.values:
            told = _split_folder(value)
            if told:
                return told
    return ()


def _split_folder(value: Value) -> tuple[Taint, ...]:
    """Why the folder of a file that is named after the rank differs; empty where it does not, or has to."""
    before, name = folders(value)
    if not any(taint.kind == "rank" for part in name for taint in part.taint):
        return ()
    for part in before:
        if any(taint.kind in ("rank", "group-rank") for taint in part.taint):
            return ()
        told = tuple(t for t in _telling(part) if t.kind in ("time", "random", "filesystem"))
        if told:
            return told
    return ()


def _collected(root: Root, made: Taint) -> bool:
    """Whether somebody reads parts from a folder that each rank has made, under other names than its own."""
    for access in root.accesses:
        if access.kind in ("read", "open", "list") and not appends(access.node):
            for value in access.values:
                before, name = folders(value)
                in_folder = any(made in part.taint for part in (before or name))
                if in_folder and not any(t.kind == "rank" for part in name for t in part.taint):
                    return True
    return False
