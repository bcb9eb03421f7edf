"""SPG403: iterate over ``sorted(...)`` of the set."""

from __future__ import annotations

import libcst as cst

from ..model import Applicability, Finding
from .blocks import expression_from, last_name
from .imports import import_name
from .marks import mark
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, walk

_HANDS_ON = frozenset({"enumerate", "list", "tuple", "iter"})


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Safe for literal sets of strings or of numbers; for others the items may not be comparable."""
    loop_site, set_site = mark(finding, "loop"), mark(finding, "set")
    loop = script.at(loop_site, cst.For) if loop_site is not None else None
    if loop is None or loop.asynchronous is not None or set_site is None:
        return None
    items = loop.iter
    while isinstance(items, cst.Call) and last_name(items.func) in _HANDS_ON and items.args:
        items = items.args[0].value
    source = script.expression_at(set_site)
    here = loop_site == set_site or any(node is source for node in walk(items))
    if not here and not isinstance(items, cst.Name):
        return None
    rewrite = Rewrite(script)
    name = import_name(rewrite, "builtins", "sorted") if "sorted" in _bound(script) else "sorted"
    if name is None:
        return None
    rewrite.replace(items, expression_from(script, f"{name}({script.code(_unparenthesised(items))})"))
    safe: Applicability = "safe" if _comparable(items) else "unsafe"
    return Proposal(safe, f"iterate over `{name}(...)` of the set", rewrite.code())


def _bound(script: Script) -> set[str]:
    from .imports import bound_names

    return bound_names(script.tree)


def _unparenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=(), rpar=()) if not isinstance(node, cst.GeneratorExp) else node


def _comparable(node: cst.BaseExpression) -> bool:
    """Whether the items of a set are literal strings, or literal numbers."""
    if isinstance(node, cst.Call) and last_name(node.func) in ("set", "frozenset") and len(node.args) == 1:
        node = node.args[0].value
    if not isinstance(node, (cst.Set, cst.List, cst.Tuple)):
        return False
    items = [element.value for element in node.elements]
    return all(
        isinstance(item, cst.SimpleString) and item.prefix.lower() in ("", "r") for item in items
    ) or all(isinstance(item, (cst.Integer, cst.Float)) for item in items)
