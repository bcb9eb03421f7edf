"""Names that a branch on the rank binds in one arm only: on the ranks of the other arm they do not exist.

So do attributes that a method gives its own object in one arm. A name counts where all that binds it in its scope
stands in that one arm, so that nothing else can have bound it on the ranks that do not run the arm. Each later use
leaves an event with the condition; whether a rank without the name comes there is for the rule to judge.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..source.unparsing import unparse
from ..source.walking import children, walk
from ..traces.nodes import Event
from ..values.value import Place, Value, negate
from .frame import Frame
from .state import State

if TYPE_CHECKING:
    from ..names.classes import ClassInfo

EVENT = "use-of-partly-bound"
_ASKING = frozenset({"locals", "globals", "vars", "dir", "exec", "eval"})
_PLAIN_BASES = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "abc.ABC", "object"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Partly(NamedTuple):
    """On which ranks a name exists, where it is bound, and the rows of the arm that binds it."""

    exists: Value
    place: Place
    rows: range


def note_partly_bound(
    frame: Frame, node: ast.If, condition: Value, then_state: State, else_state: State
) -> None:
    """Remember the names that one arm of a branch on the rank has bound and the other has not."""
    for arm, mine, other, exists in _arms(node, condition, then_state, else_state):
        names = [name for name in mine.variables if name not in other.variables]
        if not names:
            continue
        bound = _bindings(frame)
        for name in names:
            sites = bound.get(name)
            if sites and all(_stands_in(site, arm) for site in sites):
                frame.partly[name] = Partly(exists, frame.place(sites[0]), _rows(arm))


def note_partly_set(
    frame: Frame, node: ast.If, condition: Value, then_state: State, else_state: State
) -> None:
    """Remember the attributes that one arm of a branch on the rank has given to this object, and nothing else gives."""
    own = frame.self_value
    cls = frame.machine.objects.info(own).cls if own is not None and own.tag == "obj" else None
    if own is None or cls is None or cls.module is not frame.module:
        return
    for arm, mine, other, exists in _arms(node, condition, then_state, else_state):
        names = mine.heap.fields(own.data[0]).keys() - other.heap.fields(own.data[0]).keys()
        for name in sorted(names):
            site = _given_only_in(cls, name, arm)
            if site is not None:
                frame.machine.partly.setdefault(
                    (id(cls), name), Partly(exists, frame.place(site), _rows(arm))
                )


def _arms(
    node: ast.If, condition: Value, then_state: State, else_state: State
) -> Iterator[tuple[list[ast.stmt], State, State, Value]]:
    """The arms that are there, each with the state that it leaves, that of the other, and when it runs."""
    yield node.body, then_state, else_state, condition
    if node.orelse:
        yield node.orelse, else_state, then_state, negate(condition)


def _given_only_in(cls: ClassInfo, name: str, arm: Sequence[ast.stmt]) -> ast.AST | None:
    """Where an attribute is given, if that is in an arm alone and nothing asks whether it is there."""
    known = cls.find_method(name) or cls.find_class_assignment(name) or cls.find_nested_class(name)
    if known or cls.find_method("__getattr__") or cls.has_unknown_base():
        return None
    if not set(cls.external_bases()) <= _PLAIN_BASES:
        return None
    if any(one.module is not cls.module for one in cls.mro()):
        return None
    own = {id(node) for one in cls.mro() for node in walk(one.node)}
    sites: list[ast.AST] = []
    for node in walk(cls.module.tree):
        if isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load):
            of_another = isinstance(node.value, ast.Name) and node.value.id == "self" and id(node) not in own
            if not of_another:
                sites.append(node)
        elif isinstance(node, ast.Constant) and node.value == name:
            return None  # a question by name, as that of `hasattr`
    return sites[0] if sites and all(_stands_in(site, arm) for site in sites) else None


def note_attribute_use(frame: Frame, receiver: Value, name: str, node: ast.AST) -> None:
    """Leave an event where an attribute is read that some ranks do not have."""
    known = frame.machine.partly.get((id(frame.machine.objects.info(receiver).cls), name))
    if known is not None:
        _leave(frame, node, unparse(node), known)


def note_use(frame: Frame, node: ast.Name) -> None:
    """Leave an event where a name is used that some ranks do not have."""
    known = frame.partly.get(node.id)
    if known is not None:
        _leave(frame, node, node.id, known)


def _leave(frame: Frame, node: ast.AST, text: str, known: Partly) -> None:
    """An event at a use outside of the arm; in it, another round of a loop has bound the name again."""
    place = frame.place(node)
    if place.filename == known.place.filename and place.row in known.rows:
        return
    bound = Value("place", (known.place,), key=("place", known.place))
    frame.out.append(Event(place, EVENT, text, (known.exists, bound)))


def _stands_in(site: ast.AST, arm: Sequence[ast.stmt]) -> bool:
    return getattr(site, "lineno", 0) in _rows(arm)


def _rows(arm: Sequence[ast.stmt]) -> range:
    return range(arm[0].lineno, (arm[-1].end_lineno or arm[-1].lineno) + 1)


def _bindings(frame: Frame) -> dict[str, list[ast.AST]]:
    """All that binds a name in the frame's scope; empty where names are asked for or bound by text."""
    scope = frame.module.tree if frame.function is None else frame.function.node
    known: dict[str, list[ast.AST]] | None = getattr(scope, "_spmdguard_bindings", None)
    if known is None:
        known = {}
        body = scope.body if isinstance(scope, ast.Module) else frame.function.body if frame.function else []
        shared = {*_shared(frame), *_own_names(body)}
        for name, site in _bound_in(body):
            if name == "*":
                known = {}
                break
            if name not in shared:
                known.setdefault(name, []).append(site)
        scope._spmdguard_bindings = known  # type: ignore[union-attr]
    return known


def _shared(frame: Frame) -> set[str]:
    """Names that other scopes bind too."""
    function = frame.function
    if function is None:
        return set(frame.module.global_assignments)
    names = {parameter.name for parameter in function.params}
    return {*names, *function.global_names, *function.shared_names, *function.nonlocal_names}


def _own_names(body: Sequence[ast.AST]) -> Iterator[str]:
    """The names that comprehensions and lambdas inside have for themselves."""
    for statement in body:
        for node in walk(statement):
            if isinstance(node, _COMPREHENSIONS):
                for inner in walk(node):
                    if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
                        yield inner.id
            elif isinstance(node, ast.Lambda):
                yield from (argument.arg for argument in walk(node.args) if isinstance(argument, ast.arg))


def _bound_in(body: Sequence[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Each binding of a scope; "*" where names are bound or asked for in a way that cannot be told."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, _COMPREHENSIONS):
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id, node
            elif node.id in _ASKING:
                yield "*", node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield (alias.asname or alias.name.split(".")[0]), node
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name, node
        if isinstance(node, _SCOPES):
            if not isinstance(node, ast.Lambda):
                yield node.name, node
            continue
        stack.extend(children(node))
