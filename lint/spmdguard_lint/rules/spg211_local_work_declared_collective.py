"""
# local-work-declared-collective (SPG211)

## What it does
Finds functions under `@collective` of spmdguard that call no collective and work with files, a tracker or a network on
some ranks alone.

## Why is this bad
`@collective` says that no rank can go on after an error in the function: it is raised at once, and later collectives
of this rank refuse. For a function that only the main rank calls that is the wrong answer. A full disk ends this rank
in the middle of a step, and the others wait for it in their next collective.

## Example
```python
import json

import spmdguard


@spmdguard.collective
def write_summary(path, loss):
    with open(path, "w") as out:
        json.dump({"loss": loss}, out)


def report(path, loss):
    if spmdguard.is_main_process():
        write_summary(path, loss)
```

## Use instead
```python
import json

import spmdguard


@spmdguard.rank_local
def write_summary(path, loss):
    with open(path, "w") as out:
        json.dump({"loss": loss}, out)


def report(path, loss):
    if spmdguard.is_main_process():
        write_summary(path, loss)
```

The error is kept, and all ranks stop together where they agree on it (`sync_should_stop`).

## Known limits
Functions that every rank calls are left alone, even where they only write files: to end at once may be meant. So are
functions out of which something is called that could not be followed and may communicate.

## Fix safety
No fix.

## References
- `spmdguard.rank_local`, `spmdguard.collective`: `docs/concepts.md`
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..source.unparsing import unparse
from ..traces.doubts import HIDDEN
from ..traces.nodes import Call, Event, Fallible, Node, Op, every_node
from ..traces.sequence import Walk
from ..traces.where import Where, calls_of
from ..values.value import Place, place_of
from .registry import rule
from .support_decorators import decorator_fact
from .support_events import finding, reading

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding
    from ..names.functions import FunctionInfo
    from ..names.modules import Module

RULE = rule(
    code="SPG211", name="local-work-declared-collective", severity="warning", status="stable", page=__doc__
)
HELP = "declare it `@rank_local`: its error is kept until all ranks stop together"
_WORLD = 4


def check(analysis: Analysis) -> Iterable[Finding]:
    """The declared functions whose work some ranks alone do, each once."""
    declared = {(f.module.filename, f.qualname): (f, d) for f, d in _declared(analysis)}
    if not declared:
        return
    communicating = {
        key for root in analysis.roots for key, call in _calls(root, declared) if _may_communicate(call)
    }
    done: set[Hashable] = set()
    for root in reading(analysis):
        calls = [(key, call) for key, call in _calls(root, declared) if key not in communicating]
        walks = _walks(root, {call for _, call in calls}) if calls else []
        for key, call in calls:
            seen = [walk.seen.get(call, frozenset()) for walk in walks]
            if key in done or all(one == seen[0] for one in seen):
                continue
            done.add(key)
            function, decorator = declared[key]
            where = Node(place_of(function.module.filename, decorator))
            text = unparse(decorator)
            message = (
                f"`@{text}` on `{function.name}`, which calls no collective and works on some ranks alone"
            )
            yield finding(RULE, where, message, HELP, steps=[(call.place, f"`{call.text}` is called here")])


def _declared(analysis: Analysis) -> Iterator[tuple[FunctionInfo, ast.expr]]:
    for module in analysis.project.relevant_modules():
        for function in module.all_functions if b"spmdguard" in module.source.content else ():
            for decorator in function.decorators:
                if _declares(module, decorator):
                    yield function, decorator


def _declares(module: Module, decorator: ast.expr) -> bool:
    fact = decorator_fact(module, decorator)
    return fact is not None and fact.event == "mark-collective"


Key = tuple[str, str]


def _calls(root: Root, declared: dict[Key, tuple[FunctionInfo, ast.expr]]) -> Iterator[tuple[Key, Call]]:
    """The followed calls of declared functions."""
    for node in every_node(root.tree):
        if isinstance(node, Call) and node.body:
            key = (node.body[0].place.filename, node.name)
            if key in declared:
                yield key, node


def _may_communicate(call: Call) -> bool:
    return any(
        isinstance(node, Op) or (isinstance(node, Event) and node.name == HIDDEN)
        for node in every_node(call.body)
    )


def _walks(root: Root, calls: set[Call]) -> list[_Touched]:
    walks = [_Touched(calls, rank) for rank in range(_WORLD)]
    for walk in walks:
        walk.run(root.tree, "")
    return walks


class _Touched(Walk):
    """The way of one rank: what of files and networks it comes to in the calls."""

    def __init__(self, calls: set[Call], rank: int) -> None:
        super().__init__(rank=rank, world=_WORLD)
        self.calls = calls
        self.seen: dict[Call, frozenset[Place]] = {}

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, Fallible) and node.io:
            for call in calls_of(where):
                if call in self.calls:
                    self.seen[call] = self.seen.get(call, frozenset()) | {node.place}
        return state
