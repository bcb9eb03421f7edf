"""
# rank-varying-module-use (SPG310)

## What it does
Finds branches in the `forward` of a module that decide, by what is in the input, whether a submodule
takes part; where the module is wrapped for gradient synchronisation or for sharded parameters.

## Why is this bad
DistributedDataParallel expects a gradient for every parameter from every rank: a head that one rank left
out keeps the others waiting in `backward()`. With FSDP and ZeRO-3 the parameters themselves are gathered
when the submodule runs, by all ranks together. An empty selection, an expert without tokens or a dropped
layer on one rank is enough. A `SyncBatchNorm` exchanges its statistics in the forward pass already, and waits there.

## Example
```python
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x, keep):
        features = self.trunk(x)
        picked = features[keep]
        if picked.numel() == 0:
            return features.mean()
        return features.mean() + self.head(picked).sum()


def build():
    return DDP(Detector())
```

## Use instead
Let every submodule run, on an empty input if need be (the sum over nothing is a zero with a gradient):

```python
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x, keep):
        features = self.trunk(x)
        return features.mean() + self.head(features[keep]).sum()


def build():
    return DDP(Detector())
```

or tell DDP: `find_unused_parameters=True`. With ZeRO-3, name the class to `set_z3_leaf_modules`.

## Known limits
Looked at where class and wrapper stand in one file, with the methods of the class that `forward` calls. Submodules
are those that `__init__` builds, and those that it is given and the class calls, but for functions by their names
(`loss_fn`). Conditions on a derived tensor's values and on whether there is anything in it count, as statement, in an
expression (`self.a(x) if x.mean() > 0 else self.b(x)`) or as index (`self.heads[int(x.argmax())]`); conditions on
configuration and other shapes do not. The presence of an argument counts where the file gives it or None by what is
in a batch (`batch.get("images")`), where its function that collates rows does, or where a call in the file makes it
by rank or data; so does an argument that is the condition (`if first:`) in the last case. A file that sets
`find_unused_parameters=True` is left alone but for batch norms that it converts to `SyncBatchNorm`, and one that
names the class to `set_z3_leaf_modules` altogether.

## Fix safety
No fix.

## References
- [DistributedDataParallel:
  find_unused_parameters](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
- [DeepSpeed: leaf modules](https://deepspeed.readthedocs.io/en/latest/zero3.html)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..facts import lookup
from ..model import Finding
from ..names.chunks import without_docstrings
from ..names.dotted import called_name, dotted_name
from ..names.symbols import ExternalSymbol
from ..source.calls import calls_in
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Event, every_node
from ..values.value import place_of
from .registry import rule
from .support_modules import Skip, skips
from .support_optional import optional_parameters, told_apart
from .support_submodules import holds_norm, submodules_of
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo
    from ..names.modules import Module

RULE = rule(code="SPG310", name="rank-varying-module-use", severity="warning", status="stable", page=__doc__)
HELP = "let the submodule run on every rank, on an empty input or with a zero factor"
_INFERRING = re.compile(r"infer|predict|generat|decod|sampl|eval|test|post|no_grad")
_SEEDED = re.compile(r"\b(\w+)(?:\s*=\s*(?:\w+\.)*Generator\([^\n]*\))?\.manual_seed\([^\n]*rank")


def check(analysis: Analysis) -> Iterable[Finding]:
    """The modules of every file that wraps one."""
    modules = {root.module.filename: root.module for root in analysis.roots}
    wrapping = set(_by_events(analysis))
    for filename, module in sorted(modules.items()):
        if b"def forward" not in module.source.content:
            continue
        only_norms = _finds_unused(module)
        if only_norms and b"SyncBatchNorm" not in module.source.content:
            continue
        if filename in wrapping or _wraps(module):
            for cls in module.all_classes:
                yield from _of_class(module, cls, analysis, only_norms=only_norms)


def _by_events(analysis: Analysis) -> Iterator[str]:
    """Files with a call that was recognised as wrapping a module."""
    for root in analysis.roots:
        if "wrap-module" in root.contents.events:
            for node in every_node(root.tree):
                if isinstance(node, Event) and node.name == "wrap-module":
                    yield node.place.filename


def _wraps(module: Module) -> bool:
    """Whether a file calls a wrapper by name, in a function that is too plain to be read on its own."""
    for dotted, _ in calls_in(without_docstrings(module.source.text)):
        if dotted.startswith((".", "self.")):
            continue
        symbol = module.project.resolve(module, dotted)
        if isinstance(symbol, ExternalSymbol):
            fact = lookup.function(symbol.qualname)
            if fact is not None and fact.event == "wrap-module":
                return True
    return False


def _of_class(module: Module, cls: ClassInfo, analysis: Analysis, *, only_norms: bool) -> Iterator[Finding]:
    forward = cls.methods.get("forward")
    if forward is None or not isinstance(forward.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    submodules = frozenset(
        name for name, built in submodules_of(cls) if not only_norms or holds_norm(cls, built)
    )
    if not submodules or _is_leaf(module, cls.name):
        return
    optional = optional_parameters(module.tree, forward.node)
    parted = told_apart(analysis, module.filename, forward.node)
    by_rank = frozenset(_SEEDED.findall(module.source.text))
    for skip in skips(forward.node, submodules, _helpers(cls, forward), optional, by_rank, parted):
        condition = unparse(skip.condition)
        parts = ", ".join(f"`{name}`" for name in skip.missing[:3])
        message = f"{parts} takes part only on ranks where the data lets it: `{condition[:80]}` decides"
        yield finding_at(RULE, _event(module, skip), message, HELP)


def _helpers(cls: ClassInfo, forward: FunctionInfo) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The methods of a class that its forward method calls, one after another, but for those of inference."""
    found, open_ends = {forward.name}, [forward]
    while open_ends:
        method = open_ends.pop(0)
        for node in walk(method.node):
            if (
                not isinstance(node, ast.Call)
                or dotted_name(node.func) != f"{method.self_name}.{called_name(node)}"
            ):
                continue
            called = cls.methods.get(called_name(node))
            if called is None or called.name in found or called.decorators or _INFERRING.search(called.name):
                continue
            found.add(called.name)
            if isinstance(called.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                open_ends.append(called)
                yield called.node


def _event(module: Module, skip: Skip) -> Event:
    """A node to point to: where the branch leaves, or where the submodule is used."""
    return Event(place_of(module.filename, skip.at), "branch", unparse(skip.at))


def _finds_unused(module: Module) -> bool:
    """Whether the file asks DDP to look for parameters without a gradient."""
    if b"find_unused_parameters" not in module.source.content:
        return False
    return any(
        isinstance(node, ast.keyword)
        and node.arg == "find_unused_parameters"
        and not (isinstance(node.value, ast.Constant) and not node.value.value)
        for node in walk(module.tree)
    )


def _is_leaf(module: Module, name: str) -> bool:
    """Whether DeepSpeed is told to gather a class as a whole."""
    if b"set_z3_leaf_module" not in module.source.content:
        return False
    return any(
        isinstance(node, ast.Call)
        and unparse(node.func).endswith(("set_z3_leaf_modules", "set_z3_leaf_module"))
        and name in unparse(node)
        for node in walk(module.tree)
    )
