"""
# name-bound-on-some-ranks (SPG209)

## What it does
Finds variables, and attributes of an object of the project, that are assigned in one arm of a branch on the rank only,
and used where ranks come that did not run that arm.

## Why is this bad
On those ranks the name does not exist: they end in an `UnboundLocalError` (or `NameError`, `AttributeError`), while
the ranks that have it go on to their next collective and wait there. On a single process the code works.

## Example
```python
import torch.distributed as dist


def train(steps, config, total):
    if dist.get_rank() == 0:
        verbose = config["verbose"]
    for step in steps:
        dist.all_reduce(total)
        if verbose and dist.get_rank() == 0:
            print(step, total)
```

## Use instead
```python
import torch.distributed as dist


def train(steps, config, total):
    verbose = config["verbose"]
    for step in steps:
        dist.all_reduce(total)
        if verbose and dist.get_rank() == 0:
            print(step, total)
```

## Known limits
The condition must be one that a rank decides (`rank == 0`, `is_main_process`), and every assignment of the name in
its function must stand in that arm; for an attribute, every one in the file. Left alone are uses in nested functions
and in a `try` that catches the error, functions that ask `locals()`, and attributes that some text names
(`hasattr(self, "run")`) or whose class has ancestors outside the project. So are uses under a condition on a rank that
the linter cannot tell, and in functions under a decorator of the project that no call in sight goes through.

## Fix safety
No fix: only the author knows what the other ranks should have.

## References
- [UnboundLocalError](https://docs.python.org/3/library/exceptions.html#UnboundLocalError)
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from ..interpreter.parameters import annotation_name
from ..interpreter.partly import EVENT
from ..names.symbols import FunctionSymbol
from ..traces.catching import catches
from ..traces.nodes import Branch, Event, Fallible, Op, Try
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.evaluate import Valuation, truth
from .registry import rule
from .support_events import finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding
    from ..values.value import Value

RULE = rule(code="SPG209", name="name-bound-on-some-ranks", severity="error", status="stable", page=__doc__)
HELP = "give it a value on every rank: assign it before the branch, or use it under the same condition"
_ASKING = frozenset({"rank", "group-rank"})
_RANKS = ((0, 2, 2), (1, 2, 2), (2, 4, 2), (3, 4, 2))


def check(analysis: Analysis) -> Iterable[Finding]:
    """Uses of a name on a rank on which it is not bound; the first one of each name."""
    for root in reading(analysis):
        if EVENT not in root.contents.events or _let_in(analysis, root):
            continue
        found: dict[Hashable, Finding] = {}
        for rank, world, local in _RANKS:
            walk = _Uses(rank, world, local, found)
            walk.run(root.tree, "")
        yield from found.values()


class _Uses(Walk):
    """The way of one rank through a tree."""

    def __init__(self, rank: int, world: int, local: int, found: dict[Hashable, Finding]) -> None:
        super().__init__(rank=rank, world=world, local=local)
        self.at = Valuation(rank, world, local)
        self.found = found

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if not isinstance(node, Event) or node.name != EVENT or truth(node.args[0], self.at) is not False:
            return state
        if any(isinstance(w.node, Branch) and self._may_tell(w.node.condition) for w in around(where)):
            return state
        place = node.args[1].data[0]
        if (place, node.text) not in self.found and not _is_caught(where):
            self.found[place, node.text] = finding(
                RULE,
                node,
                f"`{node.text}` is used here by rank {self.at.rank}, on which nothing has bound it",
                HELP,
                steps=[(place, f"`{node.text}` is bound here, on other ranks only")],
                where=where,
            )
        return None  # this rank has ended here

    def _may_tell(self, condition: Value) -> bool:
        """Whether a condition around a use asks for a rank in a way that nobody here can tell."""
        asks = any(taint.kind in _ASKING for taint in condition.taint)
        return asks and truth(condition, self.at) is None


def _let_in(analysis: Analysis, root: Root) -> bool:
    """Whether a function of its own has a decorator of the project, which may let some ranks in alone."""
    if root.function is None:
        return False
    names = (annotation_name(d.func if isinstance(d, ast.Call) else d) for d in root.function.decorators)
    return any(
        isinstance(analysis.project.resolve(root.module, name), FunctionSymbol) for name in names if name
    )


def _is_caught(where: Where | None) -> bool:
    """Whether the error of a missing name is caught around a place, as a question whether it is there."""
    return any(
        isinstance(w.node, Try)
        and w.part == "body"
        and any(
            catches(handler, error)
            for handler in w.node.handlers
            for error in ("UnboundLocalError", "AttributeError")
        )
        for w in around(where)
    )
