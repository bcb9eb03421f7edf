"""What a dotted name in the text stands for.

Terminology: a *symbol* is the meaning of a name as far as it is known without running or importing
anything. A name from outside the linted files is *external* and known by its qualified name only
(``torch.distributed.barrier``; built-ins are ``builtins.open``). Symbols are hashable and compare by meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .functions import FunctionInfo
    from .modules import Module


@dataclass(frozen=True, slots=True)
class FunctionSymbol:
    """A function or method defined in the linted files."""

    info: FunctionInfo


@dataclass(frozen=True, slots=True)
class ClassSymbol:
    """A class defined in the linted files."""

    info: ClassInfo


@dataclass(frozen=True, slots=True)
class ModuleSymbol:
    """A module among the linted files."""

    module: Module


@dataclass(frozen=True, slots=True)
class ExternalSymbol:
    """Something outside the linted files, by its qualified name."""

    qualname: str


@dataclass(frozen=True, slots=True)
class VariableSymbol:
    """A module-level name bound by assignment; its values are ``module.bindings[name]``."""

    module: Module
    name: str


@dataclass(frozen=True, slots=True)
class UnknownSymbol:
    """A name that could not be followed; ``name`` is the dotted text that was asked for."""

    name: str


Symbol: TypeAlias = (
    "FunctionSymbol | ClassSymbol | ModuleSymbol | ExternalSymbol | VariableSymbol | UnknownSymbol"
)
