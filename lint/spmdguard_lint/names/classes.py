"""Classes of the linted files: bases, method lookup, what their methods assign on ``self``.

Terminology: the *mro* here holds project classes only; where real linearisation fails (cycles, conflicting
orders) it falls back to depth-first order. Lookups are lazy and cached.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ..source.unparsing import unparse
from .dotted import dotted_name
from .linearise import linearise
from .selfassign import SelfAssignment, self_assignments
from .symbols import ClassSymbol, ExternalSymbol, Symbol, UnknownSymbol

if TYPE_CHECKING:
    from .functions import FunctionInfo
    from .modules import Module

_ENUMS = frozenset({"enum.Enum", "enum.Flag"})
_LITERAL_ENUMS = frozenset({"IntEnum", "StrEnum", "IntFlag"})
_DATACLASS_DECORATORS = frozenset({"dataclass", "define", "attrs", "frozen", "mutable"})


class ClassInfo:
    """One ``class`` statement; equal only to itself."""

    def __init__(
        self,
        module: Module,
        node: ast.ClassDef,
        name: str,
        qualname: str,
        outer: ClassInfo | None,
        parent: FunctionInfo | None,
    ) -> None:
        self.module = module
        self.header = node
        self.name = name
        self.qualname = qualname
        self.outer = outer
        self.parent = parent
        self.methods: dict[str, FunctionInfo] = {}
        self.setters: dict[str, FunctionInfo] = {}
        self.functions: list[FunctionInfo] = []
        self.nested_classes: dict[str, ClassInfo] = {}
        self.class_assignments: dict[str, ast.expr] = {}
        self.annotations: dict[str, ast.expr] = {}

    def __repr__(self) -> str:
        return f"<class {self.full_name}>"

    @property
    def node(self) -> ast.ClassDef:
        """The definition; ``header`` is the same node, in which bodies of methods may not have been read yet."""
        self.module.bodies.read_between(self.header.lineno, self.header.end_lineno or self.header.lineno)
        return self.header

    @property
    def full_name(self) -> str:
        """Module and qualified name, ``package.module.Class``."""
        return f"{self.module.name}.{self.qualname}"

    def add_method(self, info: FunctionInfo) -> None:
        """Record a ``def`` of the class body; of several with one name the last counts, setters apart."""
        self.functions.append(info)
        if info.is_setter:
            self.setters[info.name] = info
        elif f"{info.name}.deleter" not in info.decorator_names:
            self.methods[info.name] = info

    @cached_property
    def decorator_names(self) -> tuple[str, ...]:
        """The decorators' dotted names as written."""
        decorators = self.header.decorator_list
        names = (dotted_name(d.func if isinstance(d, ast.Call) else d) for d in decorators)
        return tuple(name for name in names if name)

    @cached_property
    def is_dataclass(self) -> bool:
        """Decorated with ``dataclass`` or attrs' equivalents; ``annotations`` are its fields in order."""
        return any(name.rpartition(".")[2] in _DATACLASS_DECORATORS for name in self.decorator_names)

    @cached_property
    def is_module(self) -> bool:
        """Derived from a library's class of modules (``nn.Module``, ``LightningModule``)."""
        return any(base.rpartition(".")[2].endswith("Module") for base in self.external_bases())

    @cached_property
    def is_enum(self) -> bool:
        """Derived from one of the classes of the ``enum`` module."""
        return any(name in _ENUMS or name.rpartition(".")[2] in _LITERAL_ENUMS for name in self._named_bases)

    @cached_property
    def has_literal_members(self) -> bool:
        """An enum whose members equal their values: ``IntEnum``, ``class Role(str, Enum)``."""
        return any(name not in _ENUMS for name in self._named_bases)

    @property
    def _named_bases(self) -> Iterator[str]:
        for cls in self._mro:
            for base in cls.bases:
                if isinstance(base, (ExternalSymbol, UnknownSymbol)):
                    yield base.qualname if isinstance(base, ExternalSymbol) else base.name

    @property
    def base_names(self) -> Iterator[str]:
        """The last part of each base's name as written."""
        for base in self.header.bases:
            yield dotted_name(base.value if isinstance(base, ast.Subscript) else base).rpartition(".")[2]

    @cached_property
    def bases(self) -> list[Symbol]:
        """The base classes in order; ``Generic[T]`` and ``Base[T]`` stand for ``Generic`` and ``Base``.

        A base that is looked up in the class itself (``class A(A.f)``) finds what there is so far.
        """
        found: list[Symbol] = []
        self.__dict__["bases"] = found
        for base in self.header.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            dotted = dotted_name(plain)
            if dotted:
                found.append(self.module.project.resolve_class_base(self, dotted))
            else:
                found.append(UnknownSymbol(unparse(plain)[:80]))
        for early in ("project_bases", "_mro"):
            self.__dict__.pop(early, None)
        return found

    @cached_property
    def project_bases(self) -> list[ClassInfo]:
        """Those bases that are classes of the linted files."""
        return [base.info for base in self.bases if isinstance(base, ClassSymbol) and base.info is not self]

    def mro(self) -> list[ClassInfo]:
        """This class and its project ancestors in lookup order."""
        return list(self._mro)

    @cached_property
    def _mro(self) -> tuple[ClassInfo, ...]:
        return tuple(linearise(self, lambda cls: cls.project_bases))

    def external_bases(self) -> list[str]:
        """Qualified names of the ancestors outside the project, nearest first, each once."""
        names = (b.qualname for cls in self._mro for b in cls.bases if isinstance(b, ExternalSymbol))
        return list(dict.fromkeys(names))

    def has_unknown_base(self) -> bool:
        """True when an ancestor could not be named, so that a failed lookup proves nothing."""
        return any(not isinstance(b, (ClassSymbol, ExternalSymbol)) for c in self._mro for b in c.bases)

    def find_method(self, name: str) -> FunctionInfo | None:
        """The method that ``instance.name`` finds, also in ancestors and by ``alias = method``."""
        for cls in self._mro:
            found = cls.methods.get(name)
            if found is not None:
                return found
            alias = cls.class_assignments.get(name)
            if isinstance(alias, ast.Name) and alias.id != name and alias.id in cls.methods:
                return cls.methods[alias.id]
        return None

    def find_setter(self, name: str) -> FunctionInfo | None:
        """The property setter that ``instance.name = ...`` runs."""
        return next((cls.setters[name] for cls in self._mro if name in cls.setters), None)

    def find_class_assignment(self, name: str) -> tuple[ClassInfo, ast.expr] | None:
        """The class that assigns ``name`` in its body, nearest first, and the value."""
        for cls in self._mro:
            if name in cls.class_assignments:
                return cls, cls.class_assignments[name]
        return None

    def find_annotation(self, name: str) -> tuple[ClassInfo, ast.expr] | None:
        """The class that annotates ``name`` in its body, nearest first, and the annotation."""
        for cls in self._mro:
            if name in cls.annotations:
                return cls, cls.annotations[name]
        return None

    def find_nested_class(self, name: str) -> ClassInfo | None:
        """The class defined under ``name`` in the body of this class or an ancestor."""
        return next((c.nested_classes[name] for c in self._mro if name in c.nested_classes), None)

    @cached_property
    def self_assignments(self) -> dict[str, list[SelfAssignment]]:
        """Every ``self.name = ...`` in the methods of this class (not its ancestors), in source order."""
        return self_assignments(self)

    def find_self_assignments(self, name: str) -> list[SelfAssignment]:
        """Every ``self.name = ...`` in this class and its ancestors, nearest class first."""
        return [found for cls in self._mro for found in cls.self_assignments.get(name, ())]
