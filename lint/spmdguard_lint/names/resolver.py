"""Follows dotted names through bindings, imports, re-exports, stars, classes and aliases.

Invariant: a name being followed is never entered again (circular imports and aliases end as
``VariableSymbol`` or ``UnknownSymbol``), and chains are cut at ``_MAX_DEPTH``. Modules are parsed only when a
name leads into them. Results of whole queries are cached.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from .bindings import AssignBinding, Binding, ClassBinding, FunctionBinding, ImportBinding
from .dotted import dotted_name
from .stars import StarNames
from .symbols import (
    ClassSymbol,
    ExternalSymbol,
    FunctionSymbol,
    ModuleSymbol,
    Symbol,
    UnknownSymbol,
    VariableSymbol,
)

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .functions import FunctionInfo
    from .layout import ModuleIndex
    from .modules import Module

_MAX_DEPTH = 60
_BUILTINS = frozenset(n for n in dir(builtins) if not n.startswith("__")) | {"__import__"}


class Resolver:
    """Answers what a dotted name means in a module."""

    def __init__(self, index: ModuleIndex) -> None:
        self._index = index
        self._stars = StarNames(index)
        self._active: set[tuple[Module, str]] = set()
        self._cache: dict[tuple[Module, str], Symbol] = {}

    def note_questions(self) -> None:
        """Note what has been asked of files that star imports lead to."""
        self._stars.note()

    def resolve(self, module: Module, dotted: str) -> Symbol:
        """The meaning of ``dotted`` at module level of ``module``."""
        key = (module, dotted)
        found = self._cache.get(key)
        if found is None:
            found = self._walk(module, dotted)
            if not self._active:
                self._cache[key] = found
        return found

    def resolve_before(self, module: Module, dotted: str, row: int) -> Symbol:
        """Like ``resolve``, with the first name as bound above ``row``: the ``f`` inside ``f = wrap(f)``."""
        first, _, rest = dotted.partition(".")
        bindings = module.bindings.get(first, [])
        above = [b for b in bindings if b.row < row]
        if not above or len(above) == len(bindings):
            return self.resolve(module, dotted)
        symbol: Symbol | None = self._bound(module, first, above)
        for name in rest.split(".") if rest else ():
            symbol = self.member(symbol, name, module) if symbol is not None else None
        return UnknownSymbol(dotted) if symbol is None else symbol

    def member(self, symbol: Symbol, name: str, importer: Module) -> Symbol | None:
        """The meaning of ``symbol.name``, or None when it cannot be told."""
        if isinstance(symbol, ModuleSymbol):
            return self.module_member(symbol.module, name)
        if isinstance(symbol, ExternalSymbol):
            qualname = f"{symbol.qualname}.{name}"
            module = self._index.find(qualname, importer)
            return ExternalSymbol(qualname) if module is None else ModuleSymbol(module)
        if isinstance(symbol, ClassSymbol):
            return self._class_member(symbol.info, name)
        return None

    def module_member(self, module: Module, name: str) -> Symbol | None:
        """The meaning of attribute ``name`` of a project module."""
        key = (module, name)
        if key in self._active:
            return self._submodule(module, name)  # ``from . import name`` in a package's own __init__
        if len(self._active) >= _MAX_DEPTH:
            return None
        self._active.add(key)
        try:
            bindings = module.bindings.get(name)
            if bindings:
                return self._bound(module, name, bindings)
            return self._submodule(module, name) or self._starred(module, name) or self._lazy(module, name)
        finally:
            self._active.discard(key)

    def _walk(self, module: Module, dotted: str) -> Symbol:
        first, _, rest = dotted.partition(".")
        symbol: Symbol | None = self.module_member(module, first)
        if symbol is None:
            symbol = ExternalSymbol(f"builtins.{first}") if first in _BUILTINS else self._guess(module, first)
        for name in rest.split(".") if rest else ():
            if symbol is None:
                break
            symbol = self.member(symbol, name, module)
        return UnknownSymbol(dotted) if symbol is None else symbol

    def _bound(self, module: Module, name: str, bindings: list[Binding]) -> Symbol:
        binding = preferred(bindings)
        if isinstance(binding, FunctionBinding):
            return FunctionSymbol(binding.info)
        if isinstance(binding, ClassBinding):
            return ClassSymbol(binding.info)
        if isinstance(binding, ImportBinding):
            return self._imported(module, binding)
        alias = dotted_name(binding.value)
        if alias and alias.partition(".")[0] != name and _is_only_value(binding, bindings):
            target = self._walk(module, alias)
            if not isinstance(target, UnknownSymbol):
                return target
        return VariableSymbol(module, name)

    def _imported(self, module: Module, binding: ImportBinding) -> Symbol:
        base = self._index.find(binding.module, module) if binding.module else None
        if binding.name is None:
            return ExternalSymbol(binding.module) if base is None else ModuleSymbol(base)
        if not binding.module:  # ``from . import name`` in a script: a sibling
            sibling = self._index.find(binding.name, module)
            return UnknownSymbol(binding.target) if sibling is None else ModuleSymbol(sibling)
        if base is None:
            found = self.member(ExternalSymbol(binding.module), binding.name, module)
            return UnknownSymbol(binding.target) if found is None else found
        found = self.module_member(base, binding.name)
        return UnknownSymbol(binding.target) if found is None else found

    def _submodule(self, module: Module, name: str) -> Symbol | None:
        if not module.is_package:
            return None
        found = self._index.find(f"{module.name}.{name}", module)
        return None if found is None else ModuleSymbol(found)

    def _starred(self, module: Module, name: str) -> Symbol | None:
        """The last star import that offers the name; files whose text cannot offer it are not parsed."""
        for star in reversed(module.star_imports):
            base = self._index.find(star, module)
            if base is None or base is module or not self._stars.offers(base, name):
                continue
            exported = base.dunder_all
            if exported is None and name.startswith("_"):
                continue
            found = self.module_member(base, name)
            if found is not None and (exported is None or name in exported):
                return found
        return None

    def _lazy(self, module: Module, name: str) -> Symbol | None:
        submodule = module.lazy_exports.get(name)
        if not submodule:
            return None
        base = self._index.find(f"{module.name}.{submodule}", module)
        return None if base is None else self.module_member(base, name)

    def _guess(self, module: Module, name: str) -> Symbol | None:
        """A name nobody binds comes from the external ``import *`` of the module, if there is just one."""
        outside = [star for star in module.star_imports if self._index.find(star, module) is None]
        return ExternalSymbol(f"{outside[0]}.{name}") if len(outside) == 1 else None

    def _class_member(self, cls: ClassInfo, name: str) -> Symbol | None:
        method = cls.find_method(name)
        if method is not None:
            return FunctionSymbol(method)
        nested = cls.find_nested_class(name)
        if nested is not None:
            return ClassSymbol(nested)
        assigned = cls.find_class_assignment(name)
        alias = dotted_name(assigned[1]) if assigned is not None else ""
        if assigned is None or not alias:
            return None
        target = self._walk(assigned[0].module, alias)
        return None if isinstance(target, UnknownSymbol) else target

    def resolve_in_function(self, function: FunctionInfo, dotted: str) -> Symbol:
        """The meaning of ``dotted`` inside a function: nested definitions and imports of the functions
        around, then the module. A name bound in any other way in a function is unknown here."""
        first, _, rest = dotted.partition(".")
        scope: FunctionInfo | None = function
        while scope is not None:
            found: Symbol | None = None
            if first in scope.nested_functions:
                found = FunctionSymbol(scope.nested_functions[first])
            elif first in scope.nested_classes:
                found = ClassSymbol(scope.nested_classes[first])
            elif first in scope.scope.imports:
                found = self.resolve_import(function.module, scope.scope.imports[first])
            elif first in scope.local_names:
                return UnknownSymbol(dotted)
            if found is not None:
                for name in rest.split(".") if rest else ():
                    found = self.member(found, name, function.module) if found is not None else None
                return UnknownSymbol(dotted) if found is None else found
            scope = scope.parent
        return self.resolve(function.module, dotted)

    def resolve_import(self, importer: Module, target: str) -> Symbol:
        """The meaning of an absolute dotted name as an import in ``importer`` would find it."""
        first, _, rest = target.partition(".")
        base = self._index.find(first, importer)
        symbol: Symbol | None = ExternalSymbol(first) if base is None else ModuleSymbol(base)
        for name in rest.split(".") if rest else ():
            symbol = self.member(symbol, name, importer) if symbol is not None else None
        return UnknownSymbol(target) if symbol is None else symbol


def _is_only_value(binding: AssignBinding, bindings: list[Binding]) -> bool:
    """Whether every other binding of the name is a fallback or a constant placeholder."""
    others = (b for b in bindings if b is not binding and not b.fallback)
    return all(isinstance(b, AssignBinding) and isinstance(b.value, ast.Constant) for b in others)


def preferred(bindings: list[Binding]) -> Binding:
    """The binding that a resolved name means: the last real one, else the first import or definition."""
    real = [b for b in bindings if not b.fallback]
    if real:
        return real[-1]
    defined = [b for b in bindings if not isinstance(b, AssignBinding)]
    return defined[0] if defined else bindings[-1]
