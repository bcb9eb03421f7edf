"""The submodules of a class: what its ``__init__`` builds, and what it is given and calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..names.dotted import called_name, dotted_name
from ..names.symbols import ClassSymbol, ExternalSymbol
from ..source.unparsing import unparse
from ..source.walking import walk

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo

_MODULE_CLASS = re.compile(
    r"\.[A-Z]\w*(?:Tower|Encoder|Decoder|Head|Layer|Block|Model|Net|Projector|MLP|Adapter|Experts?)$"
)
_ANNOTATED = re.compile(
    r"\b(?:Module|ModuleList|ModuleDict|PreTrainedModel)\b|\w(?:Tower|Encoder|Decoder|Head|Model)\b"
)
_FUNCTION = re.compile(  # parameters by these names are mostly functions, or modules without parameters
    r"(?i:loss|criteri|(?:^|_)(?:fn|func|function|act|transform|pool|drop)|activation|metric|process|token|sampl|schedul"
    r"|logger|hook|callback|collat|match|solver|weight|size|dim)"
)
_NORM = re.compile(r"BatchNorm\dd|SyncBatchNorm")
_BUILDERS = ("nn.", "torch.nn.")


def submodules_of(cls: ClassInfo) -> Iterator[tuple[str, ast.expr]]:
    """Attributes that ``__init__`` sets to a module, with its making: ``nn.*``, a class with a forward, a parameter."""
    for owner in cls.mro():
        init = owner.methods.get("__init__")
        if init is None:
            continue
        given = _given_modules(owner, init)
        for node in walk(init.node):
            for target, value in _pairs(node):
                if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
                    continue
                handed_in = (
                    isinstance(value, ast.Name) and value.id in given and target.attr in _called(owner)
                )
                if handed_in or _builds_module(owner, value):
                    yield target.attr, value


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment sets to what, also item by item: ``self.a, self.b = a, b``."""
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(target.elts) == len(node.value.elts)
        ):
            yield from zip(target.elts, node.value.elts, strict=True)
        else:
            yield target, node.value


def _given_modules(cls: ClassInfo, init: FunctionInfo) -> frozenset[str]:
    """The parameters of ``__init__`` that are modules: by their annotation, or by a name that is no function's."""
    node = init.node
    if not isinstance(node, ast.FunctionDef) or not any(
        base.endswith(".Module") for base in cls.external_bases()
    ):
        return frozenset()
    return frozenset(
        a.arg
        for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if (_ANNOTATED.search(unparse(a.annotation)) if a.annotation else not _FUNCTION.search(a.arg))
    )


def _called(cls: ClassInfo) -> frozenset[str]:
    """The attributes of the receiver that the methods of a class call."""
    return frozenset(
        node.func.attr
        for method in cls.functions
        for node in walk(method.node)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == method.self_name
    )


def holds_norm(cls: ClassInfo, built: ast.expr) -> bool:
    """Whether a module has a batch norm, which ``convert_sync_batchnorm`` makes one of all ranks."""
    if _NORM.search(unparse(built)):
        return True
    symbol = (
        cls.module.project.resolve(cls.module, called_name(built)) if isinstance(built, ast.Call) else None
    )
    return isinstance(symbol, ClassSymbol) and _NORM.search(unparse(symbol.info.node)) is not None


def _builds_module(cls: ClassInfo, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    symbol = cls.module.project.resolve(cls.module, dotted_name(value.func))
    if isinstance(symbol, ClassSymbol):
        return symbol.info.find_method("forward") is not None
    if not isinstance(symbol, ExternalSymbol):
        return False
    return symbol.qualname.startswith(_BUILDERS) or _MODULE_CLASS.search(symbol.qualname) is not None
