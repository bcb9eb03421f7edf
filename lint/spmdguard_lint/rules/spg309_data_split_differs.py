"""
# data-split-differs (SPG309)

## What it does
Finds data that the ranks divide among themselves by an order which each of them has drawn for itself: a
sampler whose seed is random, read from the clock or computed from the rank, or a shuffled list of which every
rank takes its share; and by the order in which a folder is listed, where it is not sorted.

## Why is this bad
Every rank must divide the same permutation. With orders of their own the shares overlap and leave samples
out. Nothing hangs and nothing is reported: the model trains on part of the data, and a metric over "all"
samples counts some of them twice. `os.listdir`, `glob` and `Path.iterdir` give names in an order of the file system's
own, which is another one on another machine.

## Example
```python
import time

import torch.distributed as dist
from torch.utils.data import DistributedSampler

def make(dataset):
    return DistributedSampler(dataset, seed=int(time.time()) + dist.get_rank())
```

## Use instead
```python
import time

import torch.distributed as dist
from torch.utils.data import DistributedSampler

def make(dataset):
    seed = [int(time.time())]
    dist.broadcast_object_list(seed, src=0)
    return DistributedSampler(dataset, seed=seed[0])
```

## Known limits
Torch's default generator starts with the same seed in every process, so that its draws are taken for equal
unless the code seeds it by rank or clock. A sampler of your own counts where its class asks for the rank and
its seed is an argument named so. Seeds that other code sets for the generator of a sampler are not followed. Of
listings those count of which a rank takes a slice, or every so many in a loop; not those that a data set numbers.

## Fix safety
No fix: sharing the seed costs a collective.

## References
- https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..source.walking import walk
from ..traces.files import parts_of
from ..traces.nodes import Branch, Event, Loop, Node, every_node
from ..values.evaluate import holds_rank
from .support import source_text
from .support_events import argument, finding

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding
    from ..values.value import Place, Taint, Taints, Value

RULE = rule(code="SPG309", name="data-split-differs", severity="warning", status="stable", page=__doc__)
HELP = "draw the seed on one rank and broadcast it, or take it from the configuration"
SORT = "sort the listing: `sorted(os.listdir(folder))`"
_LISTING = re.compile(r"\b(?:listdir|scandir|i?glob|rglob|iterdir|walk)\(")
_OWN = ("rank", "group-rank", "time", "random", "environment")
_DRAWN = ("rank", "time", "random")
_ASKS_RANK = frozenset({"get_rank", "rank", "num_replicas", "world_size", "process_index"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report samplers and shares of an order that is not the same on all ranks."""
    for root in analysis.roots:
        if "list" in root.contents.events and root.contents.num_loops:
            yield from _counted_off(root)
        if not root.contents.events & {"sampler", "shard-slice"}:
            continue
        for node in every_node(root.tree):
            if not isinstance(node, Event):
                continue
            if node.name == "sampler":
                yield from _sampler(analysis, node)
            elif node.name == "shard-slice":
                yield from _listed(root, node, node.args[0], node.text)
                own = [taint for taint in reasons(node.args[0], _DRAWN) if is_order(node.args[0])]
                if own:
                    message = (
                        f"`{node.text}` takes a rank's share of an order that each rank draws for itself"
                    )
                    steps = [(taint.place, source_text(taint)) for taint in own[:2]]
                    yield finding(RULE, node, message, HELP, steps=steps)


def _sampler(analysis: Analysis, node: Event) -> Iterable[Finding]:
    seed = _seed(analysis, node)
    own = reasons(seed, _OWN) if seed is not None and not takes_rank_away(seed) else []
    if own:
        yield finding(
            RULE,
            node,
            f"`{node.text}` divides the data by a seed that differs between ranks",
            HELP,
            steps=[(taint.place, source_text(taint)) for taint in own[:2]],
        )


def is_order(value: Value) -> bool:
    """Whether a value is a shuffled order, and not just any drawn numbers."""
    texts = " ".join(str(part.data[:1]) for part in parts_of(value)) + " ".join(t.text for t in value.taint)
    return any(word in texts for word in ("perm", "shuffle", "sample("))


def takes_rank_away(seed: Value) -> bool:
    """Whether a seed that has the rank in it is freed from it by subtraction."""
    return any(
        part.tag == "expr" and part.data[0] == "-" and any(t.kind == "rank" for t in part.data[1][1].taint)
        for part in parts_of(seed)
        if part.tag != "expr" or len(part.data[1]) == 2
    )


def _listed(root: Root, node: Node, value: Value, text: str) -> Iterable[Finding]:
    """A share of the names in a folder, in the order in which this machine lists them; its own ranks list alike."""
    if "local" in text:
        return
    taints = _unsorted(value) if value.trip is None else value.trip
    own = sorted(
        (
            t
            for t in taints
            if t.certainty == "definite" and t.kind == "filesystem" and _LISTING.search(t.text)
        ),
        key=lambda t: (t.place, t.text),
    )
    own = [taint for taint in own if not _sorted_at_once(root, taint.place)]
    if own and not _sorted_between(root, own[0].place, node.place, text.partition("[")[0]):
        message = f"`{text}` divides a listing, whose order may be another one on each machine"
        steps = [(taint.place, source_text(taint)) for taint in own[:1]]
        yield finding(RULE, node, message, SORT, steps=steps)


def _unsorted(value: Value) -> Taints:
    """Why a value may differ, but for what went through `sorted`: data of the first file of a sorted listing."""
    found: set[Taint] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if current.tag == "expr":
            operator, operands = current.data
            stack.extend(operands if operator != "sorted" else ())
        elif current.tag == "ite":
            stack.extend(current.data)
        else:
            found |= current.taint
    return frozenset(found)


def _sorted_at_once(root: Root, listing: Place) -> bool:
    """Whether a listing in the root's file is the argument of ``sorted``."""
    if listing.filename != root.module.filename:
        return False
    line = root.module.source.content.splitlines()[listing.row - 1]
    return line[: listing.column].rstrip().endswith(b"sorted(")


def _sorted_between(root: Root, listing: Place, share: Place, name: str) -> bool:
    """Whether a list of this name is sorted in place between two places of a file; anywhere, where they are in two."""
    lines = root.module.source.content.splitlines()
    if listing.filename == share.filename == root.module.filename:
        lines = lines[listing.row - 1 : share.row]
    return any(f"{name}.sort(".encode() in line for line in lines)


def _counted_off(root: Root) -> Iterable[Finding]:
    """Loops over a listing of which a rank takes every so many: ``if i % world_size != rank: continue``."""
    for loop in every_node(root.tree):
        if not isinstance(loop, Loop) or loop.iterated is None or loop.iterated.tag != "expr":
            continue
        operator, operands = loop.iterated.data
        if operator == "enumerate" and any(_takes_turns(node) for node in loop.body):
            yield from _listed(
                root, loop, operands[0], loop.text.partition("enumerate(")[2].removesuffix(")")
            )


def _takes_turns(node: Node) -> bool:
    if not isinstance(node, Branch) or not holds_rank(node.condition):
        return False
    return any(part.tag == "expr" and part.data[0] == "%" for part in parts_of(node.condition))


def _seed(analysis: Analysis, node: Event) -> Value | None:
    """The seed of a sampler that divides data between ranks."""
    if node.call.endswith("DistributedSampler"):
        return argument(node, 4, "seed")
    if not divides(analysis, node.call):
        return None
    return next((value for name, value in node.keywords.items() if "seed" in name), None)


def divides(analysis: Analysis, name: str) -> bool:
    """Whether a sampler of the project asks for the rank itself."""
    for module in analysis.project.relevant_modules():
        for cls in module.all_classes:
            if cls.full_name != name:
                continue
            names = {n.attr for n in walk(cls.node) if isinstance(n, ast.Attribute)}
            names |= {n.id for n in walk(cls.node) if isinstance(n, ast.Name)}
            return bool(names & _ASKS_RANK)
    return False


def reasons(value: Value, kinds: tuple[str, ...]) -> list[Taint]:
    """Why a value is each rank's own."""
    own = (t for t in value.taint if t.kind in kinds and not same_by_default(t))
    return sorted(own, key=lambda t: (t.place, t.text))


def same_by_default(taint: Taint) -> bool:
    """Whether a number comes from torch's default generator, which starts alike in every process."""
    return taint.kind == "random" and "torch." in taint.text
