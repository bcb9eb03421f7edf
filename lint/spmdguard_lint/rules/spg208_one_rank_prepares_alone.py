"""
# one-rank-prepares-alone (SPG208)

## What it does
Finds downloads, the unpacking of archives, programs that must succeed and runs of an experiment tracker, which
one rank starts while the others go to the next collective, with nothing that tells them of a failure. Also work on
files whose end one rank announces by a key of the store, where the others wait for that key.

## Why is this bad
Such calls fail. The rank that makes them raises and leaves; the others are in the barrier already, and stay
in it until its timeout. What they then report is the timeout, and the address that could not be reached
stands in the output of one rank of hundreds.

## Example
```python
import urllib.request

import torch.distributed as dist

def fetch(url, path):
    if dist.get_rank() == 0:
        urllib.request.urlretrieve(url, path)
    dist.barrier()
```

## Use instead
Share the outcome instead of a bare barrier:

```python
import urllib.request

import torch.distributed as dist

def fetch(url, path):
    problem = [None]
    if dist.get_rank() == 0:
        try:
            urllib.request.urlretrieve(url, path)
        except Exception as error:
            problem[0] = str(error)
    dist.broadcast_object_list(problem, src=0)
    if problem[0] is not None:
        raise RuntimeError(problem[0])
```

## Known limits
Files that one rank reads or writes on its own disk are SPG201 (a TensorBoard writer is one), and so is a tracker's
run where the next collective is one that the training hides (a forward, a backward). Other requests to a server are
of certainty `possible`, as are repositories and uploads on a model hub (`create_repo`, `push_to_hub`). A call is
known for a download by its name where its object is unknown. A wait for a key with a timeout of its own ends by
itself and is left alone.

## Fix safety
No fix.

## References
- `spmdguard.try_or_defer` with `spmdguard.sync_should_stop`
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..traces.files import guarded_by_rank
from ..traces.nodes import Branch, Call, Event, Fallible, Node, Op, Tree, every_node
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.evaluate import rank_dependent
from .support_events import cared_for, counts, finding, is_default_group, reading

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding

RULE = rule(code="SPG208", name="one-rank-prepares-alone", severity="warning", status="stable", page=__doc__)
_WAITING = frozenset({"store-wait", "store-get"})
_SERVED = ("tracker-start", "network", "upload")
_ON_DISK = "SummaryWriter"  # a tracker that opens a file of its own and asks nobody
_NAMES = re.compile(r"\b(download\w*|extractall|unpack_archive|urlretrieve|urlopen|snapshot_download)\(")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report what one rank fetches alone before a collective of all."""
    for root in reading(analysis):
        waiting = root.contents.events & _WAITING
        if root.contents.by_rank and (root.contents.ops or waiting):
            walk = _Preparations(_first_wait(root.tree) if waiting else None)
            walk.run(root.tree, "")
            yield from walk.found.values()


class _Preparations(Walk):
    """State: the call that one rank alone has made since the last collective, or ""; (call,) where only files fail.

    ``wait``: where ranks wait for a key of the store.
    """

    def __init__(self, wait: Event | None) -> None:
        super().__init__()
        self.wait = wait
        self.found: dict[Node, Finding] = {}
        self.ways: dict[Node, Where | None] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Op):
            if isinstance(state, Node) and counts(node) and not guarded_by_rank(where):
                self._report(state, node)
            return "" if counts(node) else state
        if not guarded_by_rank(where) or cared_for(where):
            return state
        if isinstance(node, Event) and node.name == "store-set" and self.wait is not None:
            called = state[0] if isinstance(state, tuple) else state
            always = any(w.part in ("final", "unwinding") for w in around(where))
            if isinstance(called, Node) and not always:
                self._withheld(called, node, self.wait)
            return ""
        known = isinstance(state, Node) and (asks(node) or not asks(state))
        if known or not (fetches(node) or self._writes(node)):
            return state
        self.ways.setdefault(node, where)
        return node if fetches(node) else state or (node,)

    def _writes(self, node: Event | Fallible) -> bool:
        """Whether a call works on files, before a key tells the others that it is done."""
        return self.wait is not None and isinstance(node, Fallible) and node.io and ".set(" not in node.text

    def _withheld(self, called: Node, key: Event, wait: Event) -> None:
        node = entered_call(self.ways.get(called)) or called
        text, inside = getattr(node, "text", ""), getattr(called, "text", "")
        if node in self.found:
            return
        self.found[node] = finding(
            RULE,
            node,
            f"where `{text}` fails, `{key.text}` is not reached, and the others wait in `{wait.text}`",
            "catch the error there and set the key in either case, to a value that tells of the error",
            steps=[
                (called.place, f"`{inside}` may fail on its rank alone"),
                (key.place, f"`{key.text}` tells the others"),
                (wait.place, f"`{wait.text}` is where the other ranks wait"),
            ],
            diverging=(f"{text}  # raises, leaves",),
            others=(f"{wait.text}  # waits",),
        )

    def _report(self, called: Node, operation: Op) -> None:
        where = self.ways.get(called)
        node = entered_call(where) or called
        served = isinstance(called, Event) and called.name in _SERVED
        if served and (operation.implicit or not is_default_group(operation)):
            return  # far behind, in the training: see SPG201
        if node in self.found or operation.name in ("destroy_process_group", "init_process_group"):
            return
        text = getattr(node, "text", "")
        self.found[node] = finding(
            RULE,
            node,
            f"`{text}` may fail on its rank alone, and the others wait in `{operation.text}`",
            "catch the error there and broadcast it, or keep it with `try_or_defer` and agree to stop",
            steps=[
                (
                    called.place,
                    f"`{getattr(called, 'text', '')}` {'asks a server' if served else 'fetches or unpacks'}",
                ),
                (operation.place, f"`{operation.text}` is where the other ranks wait"),
            ],
            diverging=(f"{text}  # raises, leaves",),
            others=(f"{operation.text}  # waits",),
            certainty="possible" if asks(called) else "likely",
        )


def _first_wait(tree: Tree) -> Event | None:
    """The first call that waits for a key of the store for as long as the store's own timeout."""
    waits = [n for n in every_node(tree) if isinstance(n, Event) and n.name in _WAITING]
    bounded = any(len(n.args) > 1 or "timeout" in n.keywords for n in waits if n.name == "store-wait")
    return None if bounded else next(iter(waits), None)


def asks(node: object) -> bool:
    """Whether a call is a request to a server: one of many that the code trusts, or the usual start of a script."""
    return isinstance(node, Event) and (
        node.name in ("network", "upload") or node.call.endswith(".init_trackers")
    )


def must_succeed(node: Event) -> bool:
    """Whether a failing program raises."""
    check = node.keywords.get("check")
    checked = check is not None and check.tag == "const" and bool(check.data[0])
    return checked or node.call.endswith(("check_call", "check_output"))


def entered_call(where: Where | None) -> Call | None:
    """The outermost call inside the branch that picks the rank."""
    call: Call | None = None
    for w in around(where):
        if isinstance(w.node, Call) and w.node.mode == "call":
            call = w.node
        if isinstance(w.node, Branch) and rank_dependent(w.node.condition):
            return call
    return None


def fetches(node: Event | Fallible) -> bool:
    """Whether a call fetches from another machine or unpacks what came from there."""
    if isinstance(node, Event):
        return (node.name in ("download", *_SERVED) and not node.call.endswith(_ON_DISK)) or (
            node.name == "subprocess" and must_succeed(node)
        )
    return bool(_NAMES.search(node.text))
