"""
# mixed-launchers (SPG703)

## What it does
Finds programs that start their own processes (`mp.spawn`) and let these take rank and world size from the
environment of a launcher.

## Why is this bad
Under `torchrun` every process that the launcher started spawns a set of its own. The ranks computed from
`RANK` and an index overlap or exceed `WORLD_SIZE`; the group then waits for ranks that do not exist, or
rejects one that exists twice.

## Example
```python
import os

import torch.distributed as dist
import torch.multiprocessing as mp

def worker(index):
    rank = int(os.environ["RANK"]) + index
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(worker, nprocs=2)
```

## Use instead
```python
import torch.distributed as dist

def main():
    dist.init_process_group("gloo")
    dist.barrier()
    dist.destroy_process_group()
```

started by `torchrun`, or `mp.spawn` with rank and world size computed from its own arguments alone.

## Known limits
A world size that is read from the environment and multiplied (`WORLD_SIZE` as the number of hosts) is not
reported.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import parts_of
from ..traces.nodes import Event, Tree, every_node
from .support_events import argument, finding

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..values.value import Value

RULE = rule(code="SPG703", name="mixed-launchers", severity="warning", status="stable", page=__doc__)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report spawns of functions that join a launcher's group."""
    spawns = [
        node
        for root in analysis.roots
        if "spawn" in root.contents.events
        for node in every_node(root.tree)
        if isinstance(node, Event) and node.name == "spawn"
    ]
    if not spawns:
        return
    joins = ((id(root.function), launcher_join(root.tree)) for root in analysis.roots)
    joining = {function: join for function, join in joins if join is not None}
    for node in spawns:
        called = [v for v in [*node.args[:1], *node.keywords.values()] if v.tag == "func"]
        join = next((joining[id(v.data[0])] for v in called if id(v.data[0]) in joining), None)
        if join is not None:
            yield finding(
                RULE,
                node,
                f"`{node.text}` starts processes that take their world size from a launcher's environment",
                "use one launcher: `torchrun` alone, or `mp.spawn` with ranks from its own arguments",
                steps=[(join.place, f"`{join.text}` reads the environment of the launcher")],
            )


def launcher_join(tree: Tree) -> Event | None:
    """The init call whose world size is the launcher's and whose rank is computed from the launcher's."""
    for node in every_node(tree):
        if not isinstance(node, Event) or node.name != "init":
            continue
        world, rank = argument(node, 3, "world_size"), argument(node, 4, "rank")
        if world is None or rank is None or world.tag not in ("world", "expr"):
            continue
        if is_world(world) and any(part.tag == "rank" for part in parts_of(rank)):
            return node
    return None


def is_world(value: Value) -> bool:
    """Whether a value is the launcher's world size itself."""
    while value.tag == "expr" and value.data[0] in ("int", "str"):
        value = value.data[1][0]
    return value.tag == "world"
