"""
# local-rank-as-rank (SPG708)

## What it does
Finds `init_process_group` calls that take the local rank for the rank, in a job of several hosts. So they do where
they take the number that `torch.multiprocessing.spawn` hands to each process.

## Why is this bad
The local rank, and the number that `spawn` hands over, counts the processes of one host. With two hosts of four
devices there are two processes of each rank from 0 to 3 and none of the ranks 4 to 7: the group is never complete, or
breaks with an error of the store.

## Example
```python
import os

import torch.distributed as dist


def join():
    local_rank = int(os.environ["LOCAL_RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("nccl", rank=local_rank, world_size=world_size)
    dist.destroy_process_group()
```

## Use instead
```python
import torch.distributed as dist


def join():
    dist.init_process_group("nccl")
    dist.destroy_process_group()
```

## Known limits
Reported where the world size speaks of several hosts: a launcher's `WORLD_SIZE`, or a product in which the
hosts are named. A world size that is a parameter or a number of devices is taken for that of one host. Of a function
that `spawn` runs, the product may stand in its own file, among the `args` of the call, or be kept in an attribute
(`args.world_size = args.gpus * args.nodes`).

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/elastic/run.html#definitions
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..facts.fact import Arg
from ..interpreter.facts_apply import argument_node
from ..source.walking import walk
from ..traces.files import parts_of
from ..traces.nodes import Event, Node, every_node
from ..values.value import is_at, place_of
from .support import source_text
from .support_events import argument, finding
from .support_spawned import Spawned, numbered, spawned_by, spread_over_hosts

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding
    from ..values.value import Place, Value

RULE = rule(code="SPG708", name="local-rank-as-rank", severity="error", status="stable", page=__doc__)
RANK = Arg(4, "rank")
_HOSTS = re.compile(r"n_?nodes|num_?nodes|\bnodes\b|machines|hosts", re.IGNORECASE)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report init calls whose rank is the local rank and whose world is larger than a host."""
    spawned: dict[int, Spawned] | None = None
    for root in analysis.roots:
        if "init" not in root.contents.events:
            continue
        spawned = spawned_by(analysis) if spawned is None else spawned
        for node in every_node(root.tree):
            if not isinstance(node, Event) or node.name != "init":
                continue
            rank, world = argument(node, RANK.index, RANK.keyword), argument(node, 3, "world_size")
            if rank is None or world is None:
                continue
            if rank.tag == "local_rank" and several_hosts(world, node):
                yield finding(
                    RULE,
                    Node(where_given(analysis, node) or node.place),
                    f"`{node.text}` takes the local rank for the rank, and the world has several hosts",
                    "give the global rank (`RANK`), or leave both out and let the launcher's environment speak",
                    steps=[(taint.place, source_text(taint)) for taint in sorted(rank.taint)[:1]],
                )
            elif root.function is not None and (call := spawned.get(id(root.function))) is not None:
                yield from _numbered(analysis, root, node, call)


def _numbered(analysis: Analysis, root: Root, node: Event, call: Spawned) -> Iterable[Finding]:
    """The number that ``spawn`` hands over, taken for the rank."""
    rank, world = argument(node, RANK.index, RANK.keyword), argument(node, 3, "world_size")
    assert rank is not None and world is not None and root.function is not None
    if numbered(root.function, rank) and spread_over_hosts(root.function, world, call, names_hosts):
        yield finding(
            RULE,
            Node(where_given(analysis, node) or node.place),
            f"`{node.text}` takes the number of a process on its host for the rank, and the world has several hosts",
            "add the number of the first process of the host: `node_rank * processes_per_node + index`",
            steps=[(call.event.place, f"`{call.event.text}` counts from 0 on each host")],
        )


def names_hosts(text: str) -> bool:
    """Whether a text names a number of hosts."""
    return _HOSTS.search(text) is not None


def where_given(analysis: Analysis, node: Event) -> Place | None:
    """Where the call is given its rank, or None where that is not written there (`**options`)."""
    module = analysis.project.by_filename.get(node.place.filename)
    for call in walk(module.tree) if module is not None else ():
        if isinstance(call, ast.Call) and is_at(call, node.place):
            given = argument_node(RANK, call)
            return None if given is None else place_of(node.place.filename, given)
    return None


def several_hosts(world: Value, node: Event) -> bool:
    """Whether a world size counts the processes of more than one host."""
    if world.tag == "world":
        return True
    product = world.tag == "expr" and world.data[0] == "*"
    return product and any(_HOSTS.search(str(part.data)) for part in parts_of(world))
