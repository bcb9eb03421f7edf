"""
# meeting-point-differs (SPG707)

## What it does
Finds `init_process_group` calls whose port each process has chosen for itself: a free port that it found, a
random number, a number made from its rank.

## Why is this bad
The processes of a job meet at one address and port. Where each looks for a free port, rank 0 listens on its
own, and every other rank knocks at another one: the job waits for the whole timeout of the store, and what it
prints ("1/4 clients joined") does not say why.

## Example
```python
import os
import socket

import torch.distributed as dist
import torch.multiprocessing as mp


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def worker(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(free_port())
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(4,), nprocs=4)
```

## Use instead
Choose the port once, in the process that starts the others:

```python
import os
import socket

import torch.distributed as dist
import torch.multiprocessing as mp


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def worker(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(4, free_port()), nprocs=4)
```

Under a cluster's scheduler, compute it from what all tasks know, such as the number of the job.

## Known limits
Only where port and group stand in one flow of calls, and the process is one of several: its rank, given to the
call or set as `RANK`, is no constant, or it comes from the launcher because the program gives none. The latter is not
taken for granted where a condition decides on the port (a launcher was asked for first). A function of another package
is known for a search of ports by its name. Addresses are not compared: a host's own name is right on one host.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#tcp-initialization
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..source.walking import walk
from ..traces.files import guarded_by_rank, parts_of
from ..traces.nodes import Branch, Event, Fallible, Node, Op
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.evaluate import rank_dependent
from ..values.value import is_at, place_of
from .support_events import argument, finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..values.value import Value

RULE = rule(code="SPG707", name="meeting-point-differs", severity="error", status="stable", page=__doc__)
HELP = "choose the port once, in the process that starts the others, and hand it to them"
_OWN = frozenset({"environment", "random", "time"})
_SEARCH = re.compile(r"(?:free|open|unused|available|random)_?(?:tcp_?)?port", re.IGNORECASE)


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report ports that each process of several finds for itself before it joins them."""
    for root in reading(analysis):
        if "init" in root.contents.events:
            walk = _Meetings(analysis)
            walk.run(root.tree, (None, None))
            yield from walk.found.values()


class _Meetings(Walk):
    """State: where the port was chosen for this process alone, and whether its rank was set to what varies.

    The latter is None as long as nothing has set the rank: then it is the launcher's.
    """

    def __init__(self, analysis: Analysis) -> None:
        super().__init__()
        self.analysis = analysis
        self.found: dict[Event, Finding] = {}
        self.asked: set[Event] = set()

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        assert isinstance(state, tuple)
        port, several = state
        if not isinstance(node, Event):
            return state
        if node.name == "set-env":
            name, value = node.args
            if name.data[0] == "MASTER_PORT":
                if ".setdefault(" in node.text or any(isinstance(w.node, Branch) for w in around(where)):
                    self.asked.add(node)
                return (node if own(value) and not guarded_by_rank(where) else None, several)
            return (port, value.tag != "const") if name.data[0] == "RANK" else state
        if node.name == "init":
            rank, world = argument(node, 4, "rank"), argument(node, 3, "world_size")
            alone = world is not None and world.tag == "const" and world.data[0] == 1
            if several is None and rank is None:
                several = port is not None and port not in self.asked
            if not alone and (several if rank is None else rank.tag != "const"):
                method = argument(node, 1, "init_method")
                by_environment = method is not None and _begins_with(method, "env://")
                if method is not None and own(method) and not by_environment:
                    self._report(node, node, method)
                elif port is not None and (method is None or by_environment):
                    self._report(port, node, port.args[1])
        return state

    def _report(self, chosen: Event, joined: Event, port: Value) -> None:
        steps = [(joined.place, f"`{joined.text}` is where the ranks would meet")]
        shown: Node = chosen
        if chosen is joined:
            shown, steps = _method_of(self.analysis, joined), []
        drawn = sorted({(t.place, t.text) for t in port.taint if t.kind in _OWN and t.place != shown.place})
        steps += [(place, f"`{text}` gives each process its own") for place, text in drawn[:2]]
        self.found.setdefault(
            chosen,
            finding(
                RULE,
                shown,
                f"`{chosen.text}`: each process chooses its own port, and none meets another in `{joined.text}`",
                HELP,
                steps=steps,
            ),
        )


def _method_of(analysis: Analysis, joined: Event) -> Node:
    """The address that a call is given: the line that names the port, where a call has several."""
    module = analysis.project.by_filename.get(joined.place.filename)
    for call in walk(module.tree) if module is not None else ():
        if isinstance(call, ast.Call) and is_at(call, joined.place):
            for keyword in call.keywords:
                if keyword.arg == "init_method":
                    return Node(place_of(joined.place.filename, keyword.value))
    return joined


def _begins_with(value: Value, text: str) -> bool:
    """Whether a value is a text, or put together of texts, that begins so. What is behind ``env://`` says nothing."""
    while value.tag == "expr" and value.data[1]:
        value = value.data[1][0]
    return value.tag == "const" and isinstance(value.data[0], str) and value.data[0].startswith(text)


def own(value: Value) -> bool:
    """Whether each process comes to a value of its own."""
    if rank_dependent(value) or any(t.kind in _OWN and t.certainty != "possible" for t in value.taint):
        return True
    return any(part.tag == "expr" and _SEARCH.search(str(part.data[0])) for part in parts_of(value))
