"""How module-level names come to be bound, in source order.

``fallback`` marks a binding that stands in when the real one is missing: in an ``except`` handler, in the
``else`` of an ``if``, or a placeholder constant (``x = None``). The real one is preferred when a name is
resolved.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .functions import FunctionInfo


@dataclass(frozen=True, slots=True)
class ImportBinding:
    """``import module`` (``name`` is None) or ``from module import name``; ``module`` is absolute."""

    module: str
    name: str | None
    row: int
    fallback: bool = False

    @property
    def target(self) -> str:
        """The dotted name that is bound: ``torch.distributed`` or ``torch.distributed.barrier``."""
        if self.name is None:
            return self.module
        return f"{self.module}.{self.name}" if self.module else self.name


@dataclass(frozen=True, slots=True)
class FunctionBinding:
    """``def name``."""

    info: FunctionInfo
    row: int
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class ClassBinding:
    """``class name``."""

    info: ClassInfo
    row: int
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class AssignBinding:
    """``name = value``; ``value`` is None where the name gets part of a value: unpacking, loops, ``with``."""

    value: ast.expr | None
    target: ast.AST
    row: int
    fallback: bool = False


Binding: TypeAlias = "ImportBinding | FunctionBinding | ClassBinding | AssignBinding"
