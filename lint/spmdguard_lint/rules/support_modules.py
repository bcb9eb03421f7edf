"""Reading ``forward`` methods: which submodules a branch on the input's content uses or leaves out.

Terminology: a name is *derived* when it was computed from an argument of ``forward``. A condition *asks for content*
when it depends on the values in a derived tensor (``picked.numel() == 0``, ``mask.any()``), on a name that such an
answer is *told* by (``found = mask.any()``) or on a random draw; tests of kind and shape (``labels is None``,
``self.training``, ``x.dim() == 3``) are the same on every rank, but for whether an *optional* argument is there,
which each batch says. A submodule is *used* where it is mentioned at all, so that ``0 * self.head.weight.sum()``
counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..names.dotted import called_name, dotted_name
from ..names.emptiness import asked_for_rows
from ..source.unparsing import unparse
from ..source.walking import walk
from .support_optional import is_none_test

_CONTENT = frozenset(
    {"numel", "any", "all", "sum", "item", "nonzero", "count_nonzero", "tolist", "max", "min", "mean"}
    | {"std", "var", "norm", "median", "amax", "amin", "prod", "argmax", "argmin"}
)
_NUMBERS = frozenset({"int", "float", "bool", "len", "item", "any", "all", "numel"})
_AGREES = re.compile(r"reduce|gather|broadcast|sync|agree")
_MEASURING = frozenset({"len", "max", "min", "sum", "any", "all"})
_SELECTING = frozenset({"nonzero", "where", "masked_select", "argwhere", "unique", "index_select"})
_MASKS = (ast.Name, ast.Compare, ast.UnaryOp)
_DRAWS = ("random.", "torch.rand", "np.random.", "numpy.random.")
Method = ast.FunctionDef | ast.AsyncFunctionDef
Spot = tuple[int, int]  # row and column


class Skip(NamedTuple):
    """A branch that leaves out submodules: where to point, the condition, and what is left out."""

    at: ast.AST
    condition: ast.expr
    missing: tuple[str, ...]


def skips(
    forward: Method,
    submodules: frozenset[str],
    helpers: Iterable[Method] = (),
    optional: frozenset[str] = frozenset(),
    by_rank: frozenset[str] = frozenset(),
    parted: frozenset[Spot] = frozenset(),
) -> Iterator[Skip]:
    """Every branch of a forward method that asks for content and decides which submodules take part.

    ``helpers`` are the methods that it calls, which are read alike; what the forward method uses anyway is not missing.
    ``by_rank`` are the names of generators that each rank has seeded for itself, ``parted`` the places of tests that
    were found to differ between ranks.
    """
    anyway: frozenset[str] = frozenset()
    helpers = tuple(helpers)
    through = _through(submodules, helpers, lambda method, reader: reader.used(method.body))
    surely = _through(submodules, helpers, lambda method, reader: _always(method.body, reader))
    for method in (forward, *helpers):
        reader = _Reader(
            _receiver(method), submodules, optional if method is forward else frozenset(), by_rank, parted
        )
        reader.read_names(method)
        reader.through = surely
        always = _always(method.body, reader)
        anyway |= always if method is forward else frozenset()
        reader.through = through
        yield from _block(method.body, (), reader, always | anyway)


def _receiver(method: Method) -> str:
    return method.args.args[0].arg if method.args.args else "self"


def _through(
    submodules: frozenset[str],
    helpers: tuple[Method, ...],
    uses: Callable[[Method, _Reader], frozenset[str]],
) -> dict[str, frozenset[str]]:
    """The submodules that each helper method uses, itself or by way of others."""
    found: dict[str, frozenset[str]] = {}
    for _ in helpers[:3]:
        for method in helpers:
            reader = _Reader(_receiver(method), submodules, frozenset())
            reader.through = dict(found)
            used = uses(method, reader)
            found[method.name] = frozenset(f"self.{name.rpartition('.')[2]}" for name in used)
    return found


def _always(body: list[ast.stmt], reader: _Reader) -> frozenset[str]:
    """The submodules that every call uses: those mentioned before the first branch that may return."""
    found: frozenset[str] = frozenset()
    for statement in body:
        if any(isinstance(node, ast.Return) for node in walk(statement)):
            break
        if not isinstance(statement, (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)):
            found |= _surely(statement, reader)
    return found


def _surely(statement: ast.stmt, reader: _Reader) -> frozenset[str]:
    """What a statement uses whatever the input holds: of a choice in an expression, what both arms use."""
    found = reader.used([statement])
    for node in walk(statement):
        if isinstance(node, ast.IfExp) and reader.asks_content(node.test):
            found -= reader.used([node.body]) ^ reader.used([node.orelse])
        elif reader.picks(node):
            found -= reader.used([node])
    return found


def _block(
    block: list[ast.stmt], after: tuple[ast.stmt, ...], reader: _Reader, always: frozenset[str]
) -> Iterator[Skip]:
    """The branches of a block; ``after`` is what follows it up to the end of the function."""
    for position, statement in enumerate(block):
        rest = (*block[position + 1 :], *after)
        yield from _in_place(statement, rest, reader, always)
        if isinstance(statement, ast.If):
            if reader.asks_content(statement.test) or reader.parts(statement):
                loop_rest = tuple(block[position + 1 :])
                yield from _branch(statement, rest, loop_rest, reader, always)
            yield from _block(statement.body, rest, reader, always)
            yield from _block(statement.orelse, rest, reader, always)
        elif isinstance(statement, (ast.For, ast.While)):
            yield from _block(statement.body, (), reader, always)
        elif isinstance(statement, (ast.With, ast.Try)):
            yield from _block(statement.body, rest, reader, always)


def _branch(
    node: ast.If,
    rest: tuple[ast.stmt, ...],
    loop_rest: tuple[ast.stmt, ...],
    reader: _Reader,
    always: frozenset[str],
) -> Iterator[Skip]:
    here, there = reader.used(node.body), reader.used(node.orelse)
    leaves = _last(node.body)
    if isinstance(leaves, ast.Return):
        missing = (reader.used(rest) | there) - here - always
        if missing:
            yield Skip(leaves, node.test, tuple(sorted(missing)))
    elif isinstance(leaves, (ast.Continue, ast.Break)):
        missing = (reader.used(loop_rest) | there) - here - (always - reader.members)
        if missing:
            yield Skip(leaves, node.test, tuple(sorted(missing)))
    elif leaves is None:
        for arm, missing in ((node.body, here - there - always), (node.orelse, there - here - always)):
            used_later = reader.used(rest)
            missing -= used_later
            if missing:
                yield Skip(reader.first_use(arm, missing), node.test, tuple(sorted(missing)))
                return


def _in_place(
    statement: ast.stmt, rest: tuple[ast.stmt, ...], reader: _Reader, always: frozenset[str]
) -> Iterator[Skip]:
    """Choices in an expression: ``self.a(x) if <content> else self.b(x)``, and ``self.heads[<content>](x)``."""
    if isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)):
        return
    for node in walk(statement):
        if isinstance(node, ast.IfExp) and reader.asks_content(node.test):
            here, there = reader.used([node.body]), reader.used([node.orelse])
            later = frozenset() if isinstance(statement, ast.Return) else reader.used(rest)
            missing = (here ^ there) - always - later
            if missing:
                arm = node.body if missing & here else node.orelse
                yield Skip(reader.first_use([arm], missing), node.test, tuple(sorted(missing)))
        elif isinstance(node, ast.Subscript) and reader.picks(node):
            chosen = reader.used([node.value])
            yield Skip(node, node.slice, tuple(sorted(chosen)))


def _last(block: list[ast.stmt]) -> ast.stmt | None:
    """The jump that ends a block; a raise is no way on."""
    last = block[-1] if block else None
    return last if isinstance(last, (ast.Return, ast.Continue, ast.Break, ast.Raise)) else None


class _Reader:
    """Names of a forward method: derived ones, and loop variables that stand for submodules."""

    def __init__(
        self,
        receiver: str,
        submodules: frozenset[str],
        optional: frozenset[str],
        by_rank: frozenset[str] = frozenset(),
        parted: frozenset[Spot] = frozenset(),
    ) -> None:
        self.receiver = receiver
        self.parted = parted
        self.by_rank = by_rank
        self.optional = optional
        self.submodules = submodules
        self.derived: set[str] = set()
        self.selected: set[str] = set()
        self.drawn: set[str] = set()
        self.told: set[str] = set()
        self.agreed: set[str] = set()
        self.members: frozenset[str] = frozenset()
        self.through: dict[str, frozenset[str]] = {}

    def read_names(self, forward: Method) -> None:
        arguments = forward.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        self.derived = {a.arg for a in every} - {self.receiver}
        for node in walk(forward):
            if isinstance(node, ast.Call) and _AGREES.search(called_name(node)):
                self.agreed.update(_names(node.args))
        for _ in range(2):
            for node in walk(forward):
                if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value:
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    self._bind(targets, node.value)
                elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
                    if self.used([node.iter]):
                        self.members |= frozenset(_names([node.target])) - self._counters(node)
                    else:
                        self._bind([node.target], node.iter)

    def _counters(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> frozenset[str]:
        """The index of an ``enumerate`` is no submodule."""
        counted = isinstance(node.iter, ast.Call) and getattr(node.iter.func, "id", "") == "enumerate"
        if counted and isinstance(node.target, ast.Tuple) and node.target.elts:
            return frozenset(_names([node.target.elts[0]]))
        return frozenset()

    def _bind(self, targets: Iterable[ast.AST], value: ast.expr) -> None:
        bound = _names(targets)
        mentioned = set(_names([value]))
        if _is_number(value) and self.asks_content(value):
            self.told.update(bound)
        if self._draws(value) or mentioned & self.drawn:
            self.drawn.update(bound)
        if mentioned & self.derived or self.used([value]):
            self.derived.update(bound)
            if self._selects(value) or self._measures_items(value) or mentioned & self.selected:
                self.selected.update(bound)

    def _draws(self, value: ast.AST) -> bool:
        return any(
            isinstance(node, ast.Call)
            and (dotted_name(node.func) or "").startswith(_DRAWS)
            and not self._from_a_shared_one(node)
            for node in walk(value)
        )

    def _from_a_shared_one(self, draw: ast.Call) -> bool:
        """Whether a number is drawn from a generator of its own that nothing has seeded by the rank."""
        given = next((keyword.value for keyword in draw.keywords if keyword.arg == "generator"), None)
        if given is None or isinstance(given, ast.Constant):
            return False
        return unparse(given).rpartition(".")[2] not in self.by_rank

    def _selects(self, value: ast.expr) -> bool:
        """Whether an expression keeps a part of its input that depends on the values in it."""
        for node in walk(value):
            if isinstance(node, ast.Call):
                called = called_name(node)
                if called in _SELECTING:
                    return True
            if _mask(node) & self.derived:
                return True
        return False

    def _measures_items(self, value: ast.AST) -> bool:
        """``[len(t) for t in targets]``: how much there is in each item of an argument."""
        for node in walk(value):
            if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
                source, made = node.generators[0], [node.elt, *node.generators[0].ifs]
                items = set(_names([source.target])) if set(_names([source.iter])) & self.derived else set()
                calls = (inner for one in made for inner in walk(one) if isinstance(inner, ast.Call))
                if any(
                    called_name(call) in ("len", "numel") and set(_names([call])) & items for call in calls
                ):
                    return True
        return False

    def parts(self, node: ast.If) -> bool:
        """Whether a test was found to differ between ranks where the method is called."""
        return (node.lineno, node.col_offset) in self.parted

    def picks(self, node: ast.AST) -> bool:
        """Whether an index that asks for content picks one of several submodules: ``self.heads[int(x.argmax())]``."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
            return False
        part = f"{self.receiver}.{node.value.attr}"
        return part in self.used([node.value]) and self.asks_content(node.slice)

    def asks_content(self, test: ast.expr) -> bool:
        if self.agreed.intersection(_names([test])):
            return False
        if set(_names([test])) & self.drawn or self._draws(test):
            return True
        if self._measures_items(test) or any(
            set(_names([one])) & self.derived for one in asked_for_rows(test)
        ):
            return True
        for node in walk(test):
            if is_none_test(node) in self.optional:
                return True
            if isinstance(node, ast.Name) and node.id in self.told and not is_none_test(test):
                return True
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute) and node.func.attr in _CONTENT:
                    subject: list[ast.AST] = [node.func.value, *node.args]
                    if set(_names(subject)) & self.derived:
                        return True
                if getattr(node.func, "id", "") in _MEASURING and set(_names(node.args)) & self.selected:
                    return True
                if getattr(node.func, "attr", "") == "size" and set(_names([node.func])) & self.selected:
                    return True
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "shape"
                and set(_names([node])) & self.selected
            ):
                return True
        return False

    def used(self, nodes: Iterable[ast.AST]) -> frozenset[str]:
        """The submodules, and loop variables over them, that are mentioned."""
        found: set[str] = set()
        for root in nodes:
            for node in walk(root):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    if node.value.id == self.receiver and node.attr in self.submodules:
                        found.add(f"{self.receiver}.{node.attr}")
                    elif node.value.id == self.receiver:
                        found |= self.through.get(node.attr, frozenset())
                elif (
                    isinstance(node, ast.Name) and node.id in self.members and isinstance(node.ctx, ast.Load)
                ):
                    found.add(node.id)
        return frozenset(found)

    def first_use(self, block: Sequence[ast.AST], names: frozenset[str]) -> ast.AST:
        """The first expression of a block that mentions one of the submodules."""
        for statement in block:
            for node in walk(statement):
                if isinstance(node, (ast.Attribute, ast.Name)) and self.used([node]) & names:
                    return node
        return block[0]


def _names(nodes: Iterable[ast.AST]) -> list[str]:
    return [node.id for root in nodes for node in walk(root) if isinstance(node, ast.Name)]


def _is_number(value: ast.expr) -> bool:
    """Whether an expression gives one answer or number: a comparison, ``any()``, ``int(...)``, ``x.mean()``."""
    if isinstance(value, ast.Compare):
        return all(
            _is_number(side) or isinstance(side, ast.Constant) for side in (value.left, *value.comparators)
        )
    if isinstance(value, ast.BoolOp):
        return all(map(_is_number, value.values))
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if not isinstance(value, ast.Call) or called_name(value) not in _NUMBERS | _CONTENT:
        return False
    if called_name(value) == "tolist":
        return False
    of_torch = isinstance(value.func, ast.Attribute) and dotted_name(value.func.value) in ("torch", "np")
    return called_name(value) in _NUMBERS or len(value.args) + len(value.keywords) <= of_torch


def _mask(node: ast.AST) -> frozenset[str]:
    """The names in an index that may choose by content: ``x[keep]``, ``x[scores > 0]``, ``x[~done]``."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, _MASKS):
        return frozenset(_names([node.slice]))
    return frozenset()
