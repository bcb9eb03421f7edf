"""
# sampler-epoch-never-set (SPG314)

## What it does
Finds training loops that go through a loader with a shuffling `DistributedSampler` once an epoch, in files that never
call `set_epoch`.

## Why is this bad
`DistributedSampler` shuffles by its seed and its epoch, so that all ranks draw the same permutation. Nobody but
`set_epoch` changes the epoch: without it every epoch has the order of the first one, each rank sees the same part of
the data in each, and training gets worse without a word.

## Example
```python
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def train(data, model, optimizer, epochs):
    model = DistributedDataParallel(model)
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    for epoch in range(epochs):
        for batch in loader:
            model(batch).sum().backward()
            optimizer.step()
```

## Use instead
```python
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def train(data, model, optimizer, epochs):
    model = DistributedDataParallel(model)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            model(batch).sum().backward()
            optimizer.step()
```

## Known limits
Sampler, loader and loops must stand in one file, which is read by names: a loader is followed into attributes, through
returns and arguments. `shuffle` must be left out or be `True`. Loops without a `backward()` do not count, nor files
that hand their loaders to Accelerate, Lightning, Ignite, Fabric or Composer, which set the epoch themselves.

## Fix safety
No fix: only the author knows what counts the epochs.

## References
- [torch.utils.data.distributed.DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from ..names.dotted import called_name, dotted_name
from ..names.symbols import ExternalSymbol
from ..source.unparsing import unparse
from ..source.walking import children, walk
from ..traces.nodes import Node
from ..values.value import place_of
from .registry import rule
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(code="SPG314", name="sampler-epoch-never-set", severity="warning", status="stable", page=__doc__)
HELP = "call `set_epoch(epoch)` on the sampler before each epoch"
_SETTING = (b"set_epoch", b"accelerate", b"lightning", b"ignite", b"Fabric", b"composer")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_AROUND = frozenset({"enumerate", "tqdm", "trange", "zip", "iter", "track", "cycle"})
_Key: TypeAlias = tuple[int, str]
_NOTHING: _Key = (0, "")
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def check(analysis: Analysis) -> Iterable[Finding]:
    """Loops over loaders with a shuffling sampler, in files without a word of its epoch."""
    for module in analysis.project.relevant_modules():
        content = module.source.content
        if b"DistributedSampler(" in content and not any(word in content for word in _SETTING):
            yield from _File(module).findings()


class _File:
    """What the names of a file stand for: samplers, and loaders that use them."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.nodes = list(walk(module.tree))
        self.parents = {id(child): node for node in self.nodes for child in children(node)}
        self.functions = {node.name: node for node in self.nodes if isinstance(node, _FUNCTIONS)}
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                inits = [one for one in node.body if isinstance(one, _FUNCTIONS) and one.name == "__init__"]
                self.functions.update((node.name, init) for init in inits)
        self.bound: dict[int, set[str]] = {}
        self.samplers: set[_Key] = set()
        self.loaders: set[_Key] = set()

    def findings(self) -> Iterator[Finding]:
        """The training loops over such a loader that are run again and again."""
        if self._epoch_is_assigned():
            return
        self._follow(self.samplers, self._is_sampler)
        self._follow(self.loaders, self._is_loader)
        for node in self.nodes:
            if not isinstance(node, (ast.For, ast.AsyncFor)) or not self._goes_through(node.iter):
                continue
            if self._trains(node) and self._repeated(node):
                text = unparse(node.iter)
                message = f"each epoch goes through `{text}` in the same order: `set_epoch` is never called"
                yield finding_at(RULE, Node(place_of(self.module.filename, node.iter)), message, HELP)

    def _epoch_is_assigned(self) -> bool:
        """``sampler.epoch = n`` does what ``set_epoch`` does."""
        return any(
            isinstance(node, ast.Attribute)
            and node.attr == "epoch"
            and isinstance(node.ctx, ast.Store)
            and "sampler" in unparse(node.value).lower()
            for node in self.nodes
        )

    def _follow(self, names: set[_Key], makes: Callable[[ast.expr], bool]) -> None:
        """Collect the names that hold such an object: assigned, returned by a function, passed to one."""
        before = -1
        while before != len(names):
            before = len(names)
            for node in self.nodes:
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        self._unpack(names, makes, target, node.value)
                elif isinstance(node, ast.Return) and node.value is not None:
                    function = self._function_of(node)
                    if function is not None:
                        self._bind(names, makes, (0, f"{function.name}()"), node.value)
                elif isinstance(node, ast.Call):
                    for parameter, value in self._passed(node):
                        self._bind(names, makes, parameter, value)

    def _unpack(
        self, names: set[_Key], makes: Callable[[ast.expr], bool], target: ast.expr, value: ast.expr
    ) -> None:
        """What an assignment makes known; the items of a returned tuple are known by their position."""
        if not isinstance(target, ast.Tuple):
            self._bind(names, makes, self._key(target), value)
        elif isinstance(value, ast.Tuple):
            for one, item in zip(target.elts, value.elts, strict=False):
                self._bind(names, makes, self._key(one), item)
        elif isinstance(value, ast.Call):
            for position, one in enumerate(target.elts):
                if (position, f"{called_name(value)}()[]") in names:
                    names.add(self._key(one))

    def _bind(self, names: set[_Key], makes: Callable[[ast.expr], bool], key: _Key, value: ast.expr) -> None:
        """What a value makes known under a key; items of a tuple that a function returns under their position."""
        if isinstance(value, ast.Tuple) and key[1].endswith("()"):
            for position, item in enumerate(value.elts):
                self._bind(names, makes, (position, f"{key[1]}[]"), item)
        elif isinstance(value, ast.IfExp):
            self._bind(names, makes, key, value.body)
            self._bind(names, makes, key, value.orelse)
        elif key[1] and (makes(value) or self._key(value) in names):
            names.add(key)

    def _key(self, node: ast.expr | None) -> _Key:
        """By what an object is known: a name of a scope, an attribute, the function that gives it; "" for the rest."""
        if isinstance(node, ast.Call):
            return (0, f"{called_name(node)}()") if called_name(node) else _NOTHING
        if isinstance(node, ast.Attribute):
            return (0, f".{node.attr}")
        if not isinstance(node, ast.Name):
            return _NOTHING
        function = self._function_of(node)
        while function is not None and node.id not in self._bound_in(function):
            function = self._function_of(function)
        return (id(function) if function is not None else 0, node.id)

    def _bound_in(self, function: _Function) -> set[str]:
        """The parameters and variables of a function."""
        known = self.bound.get(id(function))
        if known is None:
            known = {node.arg for node in walk(function.args) if isinstance(node, ast.arg)}
            for node in walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    known.add(node.id)
            self.bound[id(function)] = known
        return known

    def _passed(self, call: ast.Call) -> Iterator[tuple[_Key, ast.expr]]:
        """The parameters of a function of this file that a call fills, with what it fills them with."""
        function = self.functions.get(called_name(call))
        if function is None:
            return
        parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        if parameters[:1] in (["self"], ["cls"]):
            parameters = parameters[1:]
        given = [*zip(parameters, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        yield from (((id(function), name), value) for name, value in given if name is not None)

    def _is_sampler(self, value: ast.expr) -> bool:
        """``DistributedSampler(...)`` of torch that shuffles."""
        if not isinstance(value, ast.Call) or not self._is_of_torch(value, "DistributedSampler"):
            return False
        shuffle = next((k.value for k in value.keywords if k.arg == "shuffle"), None)
        if shuffle is None and len(value.args) > 3:
            shuffle = value.args[3]
        plain = not any(k.arg is None for k in value.keywords)
        return plain and (shuffle is None or (isinstance(shuffle, ast.Constant) and shuffle.value is True))

    def _is_loader(self, value: ast.expr) -> bool:
        """``DataLoader(..., sampler=...)`` with one of the samplers."""
        if not isinstance(value, ast.Call) or not self._is_of_torch(value, "DataLoader"):
            return False
        sampler = next((k.value for k in value.keywords if k.arg == "sampler"), None)
        choices = [sampler.body, sampler.orelse] if isinstance(sampler, ast.IfExp) else [sampler]
        return any(s is not None and (self._is_sampler(s) or self._key(s) in self.samplers) for s in choices)

    def _is_of_torch(self, call: ast.Call, name: str) -> bool:
        if called_name(call) != name:
            return False
        symbol = self.module.project.resolve(self.module, dotted_name(call.func))
        return isinstance(symbol, ExternalSymbol) and symbol.qualname.startswith("torch.")

    def _goes_through(self, iterated: ast.expr) -> bool:
        """Whether a loop takes the batches of a loader, counted, shown or zipped."""
        if isinstance(iterated, ast.Call) and called_name(iterated) in _AROUND:
            return any(self._goes_through(argument) for argument in iterated.args)
        return self._key(iterated) in self.loaders

    def _function_of(self, node: ast.AST) -> _Function | None:
        """The function that a node stands in."""
        parent = self.parents.get(id(node))
        while parent is not None and not isinstance(parent, _FUNCTIONS):
            parent = self.parents.get(id(parent))
        return parent

    def _trains(self, loop: ast.AST) -> bool:
        """Whether a loop computes gradients, itself or in a function of this file that it calls."""
        called = [called_name(node) for node in walk(loop)]
        return "backward" in called or any(
            called_name(node) == "backward"
            for name in called
            if name in self.functions
            for node in walk(self.functions[name])
        )

    def _repeated(self, node: ast.AST, depth: int = 4) -> bool:
        """Whether a loop around, here or around a call of the function, comes back with the loader that there was."""
        parent = self.parents.get(id(node))
        while parent is not None and not isinstance(parent, _FUNCTIONS):
            if isinstance(parent, _LOOPS):
                return not any(called_name(inner) == "DataLoader" for inner in walk(parent))
            parent = self.parents.get(id(parent))
        if parent is None or depth == 0:
            return False
        calls = [call for call in self.nodes if called_name(call) == parent.name]
        return any(self._repeated(call, depth - 1) for call in calls)
