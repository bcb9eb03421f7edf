"""Functions of the linted files: their place, parameters and local scope.

The local scope (names, imports, whether it yields) is read on first use: most functions of a large
project are never visited.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from .dotted import dotted_name
from .scopes import Scope, does_nothing, scan_scope

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .modules import Module

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ParameterKind = Literal["positional-only", "positional", "vararg", "keyword-only", "kwarg"]
_PROPERTIES = frozenset(
    {"property", "cached_property", "abstractproperty", "lazy_property", "classproperty", "getter"}
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; ``default`` is None where it has none (a written ``None`` is an ``ast.Constant``)."""

    name: str
    kind: ParameterKind
    default: ast.expr | None
    annotation: ast.expr | None


class FunctionInfo:
    """One ``def``, ``async def`` or ``lambda``; equal only to itself."""

    def __init__(
        self,
        module: Module,
        node: FunctionNode,
        name: str,
        qualname: str,
        cls: ClassInfo | None,
        parent: FunctionInfo | None,
    ) -> None:
        self.module = module
        self.header = node
        self.name = name
        self.qualname = qualname
        self.cls = cls
        self.parent = parent
        self.nested_functions: dict[str, FunctionInfo] = {}
        self.nested_classes: dict[str, ClassInfo] = {}

    def __repr__(self) -> str:
        return f"<function {self.full_name}>"

    @property
    def node(self) -> FunctionNode:
        """The definition; ``header`` is the same node, whose body may not have been read yet."""
        self.module.bodies.read(self.header)
        return self.header

    @property
    def is_aside(self) -> bool:
        """Whether the body was put aside; it does something."""
        return self.module.bodies.is_aside(self.header)

    @property
    def may_assign(self) -> bool:
        """Whether the body may assign on its receiver, as far as is known without reading it again."""
        return not self.is_aside or self.module.bodies.assigns(self.header)

    @property
    def text(self) -> str:
        """The rows of the definition, decorators left out."""
        return self.module.source.rows(self.header.lineno, self.header.end_lineno or self.header.lineno)

    @property
    def full_name(self) -> str:
        """Module and qualified name, ``package.module.Class.method``."""
        return f"{self.module.name}.{self.qualname}"

    @property
    def decorators(self) -> list[ast.expr]:
        """The decorator expressions, outermost first."""
        return [] if isinstance(self.header, ast.Lambda) else self.header.decorator_list

    @cached_property
    def decorator_names(self) -> tuple[str, ...]:
        """The decorators' dotted names as written, ``@f(x)`` giving ``f``; other expressions are left out."""
        names = (dotted_name(d.func if isinstance(d, ast.Call) else d) for d in self.decorators)
        return tuple(name for name in names if name)

    @property
    def body(self) -> list[ast.stmt]:
        """The statements; a lambda's is the one ``return`` it stands for."""
        node = self.node
        if isinstance(node, ast.Lambda):
            return [ast.copy_location(ast.Return(node.body), node.body)]
        return node.body

    @property
    def is_async(self) -> bool:
        return isinstance(self.header, ast.AsyncFunctionDef)

    @property
    def is_generator(self) -> bool:
        return self.scope.has_yield

    @cached_property
    def is_staticmethod(self) -> bool:
        return self.cls is not None and (self.name == "__new__" or self._decorated("staticmethod"))

    @cached_property
    def is_classmethod(self) -> bool:
        implicit = self.name in ("__init_subclass__", "__class_getitem__")
        return self.cls is not None and (implicit or self._decorated("classmethod"))

    @cached_property
    def is_property(self) -> bool:
        """Read as an attribute: ``property`` and its cached and abstract relatives."""
        return self.cls is not None and any(
            name.rpartition(".")[2] in _PROPERTIES for name in self.decorator_names
        )

    @property
    def keeps_result(self) -> bool:
        """A property that is computed at its first use alone."""
        return self._decorated("cached_property")

    @cached_property
    def is_setter(self) -> bool:
        return self.cls is not None and f"{self.name}.setter" in self.decorator_names

    @cached_property
    def is_declaration(self) -> bool:
        """A method without a body of its own: ``...`` or ``raise NotImplementedError`` alone, or an abstract one's."""
        if self.cls is None or self.is_aside or not all(map(does_nothing, self.body)):
            return False
        if self._decorated("abstractmethod") or "Protocol" in self.cls.base_names:
            return True
        return any(
            isinstance(s, ast.Raise)
            or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and s.value.value is ...)
            for s in self.body
        )

    def _decorated(self, last: str) -> bool:
        return any(name.rpartition(".")[2] == last for name in self.decorator_names)

    @cached_property
    def params(self) -> tuple[Parameter, ...]:
        """The parameters in the order of the signature."""
        return _parameters(self.header.args)

    @cached_property
    def self_name(self) -> str | None:
        """The name of the receiver (``self``, ``cls``) of a method that has one."""
        if self.cls is None or (self.is_staticmethod and self.name != "__new__"):
            return None
        first = self.params[0] if self.params else None
        return first.name if first is not None and first.kind.startswith("positional") else None

    @cached_property
    def scope(self) -> Scope:
        """Names bound here, imports and yields, read from the body once."""
        markers = self.module.markers_of_rows(self.header.lineno, self.header.end_lineno)
        return scan_scope(self.node, self.module.name, self.module.is_package, markers)

    @property
    def local_names(self) -> frozenset[str]:
        """Parameters and every name bound in the body, ``global`` and ``nonlocal`` ones excluded."""
        return self.scope.local_names

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Names that functions inside this one assign under ``nonlocal``."""
        return frozenset(
            name
            for nested in self.nested_functions.values()
            for name in (*nested.nonlocal_names, *nested.shared_names)
        )

    @cached_property
    def kept_elsewhere(self) -> frozenset[str]:
        """Names of the body whose values are no local variables of this function alone."""
        return self.global_names | self.shared_names

    @property
    def global_names(self) -> frozenset[str]:
        return self.scope.global_names

    @property
    def nonlocal_names(self) -> frozenset[str]:
        return self.scope.nonlocal_names


def _parameters(args: ast.arguments) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    positional = [*args.posonlyargs, *args.args]
    missing = len(positional) - len(args.defaults)
    for index, arg in enumerate(positional):
        kind: ParameterKind = "positional-only" if index < len(args.posonlyargs) else "positional"
        default = args.defaults[index - missing] if index >= missing else None
        found.append(Parameter(arg.arg, kind, default, arg.annotation))
    if args.vararg is not None:
        found.append(Parameter(args.vararg.arg, "vararg", None, args.vararg.annotation))
    for arg, kw_default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append(Parameter(arg.arg, "keyword-only", kw_default, arg.annotation))
    if args.kwarg is not None:
        found.append(Parameter(args.kwarg.arg, "kwarg", None, args.kwarg.annotation))
    return tuple(found)
