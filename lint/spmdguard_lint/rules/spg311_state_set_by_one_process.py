"""
# state-set-by-one-process (SPG311)

## What it does
Finds attributes that `prepare_data` of a Lightning module or data module sets and other methods read.

## Why is this bad
Lightning calls `prepare_data` in one process of each node, to download and to write files. What it assigns to
`self` exists there alone: the other processes fail on a missing attribute, or go on with the value that
`__init__` has set, and the one process trains with another vocabulary, another length, another number of
batches. It waits for the rest in its first collective.

## Example
```python
import lightning.pytorch as pl
from torch.utils.data import DataLoader


class Words(pl.LightningDataModule):
    def prepare_data(self):
        self.rows = open("train.txt").readlines()

    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=8)
```

## Use instead
Write files in `prepare_data`, and read them in `setup`, which every process runs:

```python
import lightning.pytorch as pl
from torch.utils.data import DataLoader


class Words(pl.LightningDataModule):
    def prepare_data(self):
        download("train.txt")

    def setup(self, stage):
        self.rows = open("train.txt").readlines()

    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=8)
```

## Known limits
Attributes of the class itself are compared, those of its bases and users are not. One that another method than
`__init__` sets as well is taken for set in time. Methods that `prepare_data` alone calls belong to it.

## Fix safety
No fix.

## References
- [Lightning: prepare_data](https://lightning.ai/docs/pytorch/stable/data/datamodule.html#prepare-data)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..model import Finding
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Event
from ..values.value import Place
from .registry import rule
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo
    from ..names.selfassign import SelfAssignment

RULE = rule(code="SPG311", name="state-set-by-one-process", severity="warning", status="stable", page=__doc__)
HELP = "write a file there, and set the attribute in `setup`, which every process runs"


def check(analysis: Analysis) -> Iterable[Finding]:
    """The classes of every file with such a hook."""
    for module in {id(root.module): root.module for root in analysis.roots}.values():
        if any(name.encode() in module.source.content for name in facts.ONE_PROCESS_HOOKS):
            for cls in module.all_classes:
                yield from _of_class(cls)


def _of_class(cls: ClassInfo) -> Iterator[Finding]:
    hooks = [
        method
        for name, method in cls.methods.items()
        if facts.runs_in_one_process(cls.external_bases(), name) and not _asks_for_more(method)
    ]
    if not hooks:
        return
    alone = {method.name for method in hooks}
    alone |= {name for name in _called(cls, alone) if not _called_by_others(cls, name, alone)}
    for name, assignments in sorted(cls.self_assignments.items()):
        setting = [one for one in assignments if one.function.name in alone]
        elsewhere = [one for one in assignments if one.function.name not in {*alone, "__init__"}]
        if not setting or elsewhere:
            continue
        reader = next(
            (m for m in cls.functions if m.name not in {*alone, "__init__"} and _reads(m, name)), None
        )
        if reader is not None:
            yield _finding(cls, hooks[0], setting[0], name, reader)


def _asks_for_more(method: FunctionInfo) -> bool:
    """Whether a method needs arguments that the framework does not give its hook: something else of that name."""
    given = method.header.args
    needed = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    return needed > 1 or any(default is None for default in given.kw_defaults)


def _finding(
    cls: ClassInfo, hook: FunctionInfo, setting: SelfAssignment, name: str, reader: FunctionInfo
) -> Finding:
    node = setting.node
    row, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end = getattr(node, "end_lineno", None) or row
    place = Place(cls.module.filename, row, column, end, getattr(node, "end_col_offset", None) or column)
    message = (
        f"`self.{name}` is set in `{hook.name}`, which one process of a node runs; "
        f"`{reader.name}` reads it in all of them"
    )
    return finding_at(RULE, Event(place, "assign", unparse(node)), message, HELP)


def _called(cls: ClassInfo, names: set[str]) -> set[str]:
    """The methods of a class that some of its methods call on themselves."""
    return {
        node.func.attr
        for method in cls.functions
        if method.name in names
        for node in walk(method.node)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in cls.methods
    }


def _called_by_others(cls: ClassInfo, name: str, alone: set[str]) -> bool:
    return any(_reads(method, name) for method in cls.functions if method.name not in alone)


def _reads(method: FunctionInfo, name: str) -> bool:
    """Whether a method reads an attribute of its receiver."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and node.value.id == method.self_name
        for node in walk(method.node)
    )
