"""Windows of gradient accumulation, played through round by round: is what the optimizer applies exchanged?

Terminology: a *window* is the number of rounds between two steps. A backward pass is *alone* when it runs under
``no_sync``; the next one outside of it exchanges what all have added up. The *variables* of a loop are the position in
it, the window (the divisor of a ``%``) and switches that stay as they are; the rounds are played for small numbers.

Invariant: nothing is assumed. A condition that the variables do not decide ends the play without a result.
Cost: rounds times nodes of the loop, for a handful of assignments.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from ..traces.nodes import (
    Branch,
    Call,
    Event,
    Fallible,
    Jump,
    Loop,
    Node,
    Op,
    Region,
    Try,
    Yielded,
    every_node,
)
from ..values.evaluate import UNKNOWN, Valuation, evaluate, truth
from ..values.value import Place, Value, parts_of

if TYPE_CHECKING:
    from ..traces.nodes import Tree

_STEP = re.compile(r"(?:^|\.)_?(?:\w*opt(?:im(?:izer)?s?)?|scaler\w*)\.step\(")
_WINDOWS = (2, 3)
_MOST_SWITCHES = 2
_LOGIC = frozenset({"and", "or", "not", "bool"})
_EXCHANGING = frozenset(
    {"all_reduce", "reduce_scatter", "all_gather", "reduce", "broadcast", "all_reduce_coalesced"}
)


class Unexchanged(NamedTuple):
    """A step that applies gradients of this rank alone: where it is decided, the step, the backward pass before."""

    decided: Node
    step: Node
    backward: Op


class _Undecided(Exception):
    """A condition that the variables do not decide stands before something that counts."""


class _Leave(Exception):
    def __init__(self, kind: str) -> None:
        self.kind = kind


def unexchanged(loop: Loop) -> Unexchanged | None:
    """The step of a loop that some window takes on gradients which were not exchanged."""
    found = [_in_windows(loop, window) for window in _WINDOWS]
    return found[0] if all(found) else None


def is_step(node: Node) -> bool:
    """Whether a node applies gradients."""
    if isinstance(node, Event):
        return node.name == "optimizer-step"
    return isinstance(node, Fallible) and bool(_STEP.search(node.text))


def backs_alone(node: Node) -> bool:
    """Whether a node is a stretch of code whose backward passes exchange nothing."""
    return (
        isinstance(node, Region)
        and node.kind == "no-sync"
        and any(isinstance(inner, Op) and inner.name == "backward" for inner in every_node(node.body))
    )


def _in_windows(loop: Loop, window: int) -> Unexchanged | None:
    """What the rounds with one window show, for some position of the switches."""
    for length in (3 * window, 3 * window + 1):
        variables = _Variables(loop, window, length)
        if not variables.usable:
            return None
        for switches in product((True, False), repeat=len(variables.switches)):
            play = _Play(variables, dict(zip(variables.switches, switches, strict=True)))
            try:
                play.run(loop, length)
            except _Undecided:
                continue
            if play.exchanged and play.found is not None:
                return play.found
    return None


class _Variables:
    """The values in the conditions that count, and what they may stand for."""

    def __init__(self, loop: Loop, window: int, length: int) -> None:
        self.loop = loop
        self.numbers: dict[Hashable, int] = {}
        self.positions: set[Hashable] = set()
        self.switches: dict[Hashable, None] = {}
        self.usable = True
        self.inner = {key for n in every_node(loop.body) if isinstance(n, Loop) for key in _indices(n)}
        conditions = [n.condition for n in every_node([loop]) if isinstance(n, Branch) and _counts(n)]
        for condition in conditions:
            self._windows(condition, window)
        bounds = [
            n.iterated for n in every_node(loop.body) if isinstance(n, Loop) and _counts(n) and n.iterated
        ]
        for bound in bounds:
            if bound.tag == "expr" and bound.data[0] == "range" and _opaque(bound.data[1][-1]):
                self.numbers.setdefault(bound.data[1][-1].key, window)
        for source in _sources(loop):
            for part in (part for condition in conditions for part in parts_of(condition)):
                if part.tag == "expr" and part.data[0] == "len" and part.data[1][0].key == source.key:
                    self.numbers[part.key] = length
        for condition in conditions:
            self._switches(condition)
        self.usable = self.usable and len(self.positions) <= 1 and len(self.switches) <= _MOST_SWITCHES

    def _windows(self, condition: Value, window: int) -> None:
        """Divisors, and the position that they divide."""
        for part in parts_of(condition):
            if part.tag == "expr" and part.data[0] == "%":
                dividend, divisor = part.data[1]
                if _opaque(divisor):
                    self.numbers[divisor.key] = window
                self.positions.update(p.key for p in parts_of(dividend) if _moves(p, self.loop))
            elif part.tag == "sym" and _index_of(part) == self.loop.place:
                self.positions.add(part.key)
        if len(self.numbers) > 1:
            self.usable = False

    def _switches(self, value: Value) -> None:
        """What is only asked whether it holds."""
        if (
            evaluate(
                value,
                Valuation(0, 2, 2, {**self.numbers, **dict.fromkeys([*self.positions, *self.inner], 1)}),
            )
            is not UNKNOWN
        ):
            return
        if value.tag == "expr" and value.data[0] in _LOGIC:
            for operand in value.data[1]:
                self._switches(operand)
        elif _opaque(value):
            if any(
                _moves(part, self.loop) or (part.tag == "expr" and str(part.data[0]).startswith("call:"))
                for part in parts_of(value)
            ):
                self.usable = False
            self.switches[value.key] = None


class _Play:
    """One run of the rounds: which gradients are exchanged when the optimizer applies them."""

    def __init__(self, variables: _Variables, switches: dict[Hashable, bool]) -> None:
        self.variables = variables
        self.atoms: dict[Hashable, object] = {**variables.numbers, **switches}
        self.alone: Op | None = None
        self.forward_alone: bool | None = None
        self.exchanged = False
        self.found: Unexchanged | None = None

    def run(self, loop: Loop, length: int) -> None:
        start = _start(loop)
        for position in range(start, start + length):
            self.atoms.update(dict.fromkeys(self.variables.positions, position))
            if not self._round(loop):
                return

    def _round(self, loop: Loop) -> bool:
        try:
            self._tree(loop.body, False, None)
        except _Leave as leave:
            return leave.kind == "continue"
        return True

    def _tree(self, tree: Tree, quiet: bool, decided: Node | None) -> None:
        for node in tree:
            if _counts(node):
                self._node(node, quiet, decided)

    def _node(self, node: Node, quiet: bool, decided: Node | None) -> None:
        if isinstance(node, Branch):
            known = truth(node.condition, self._at())
            if known is None:
                raise _Undecided
            self._tree(node.then if known else node.orelse, quiet, node)
        elif isinstance(node, Region):
            self._tree(node.body, quiet or node.kind == "no-sync", decided)
        elif isinstance(node, Loop):
            self._inner(node, quiet, decided)
        elif isinstance(node, Call):
            try:
                self._tree(node.body, quiet, decided)
            except _Leave as leave:
                if leave.kind != "return":
                    raise
        elif isinstance(node, Try):
            self._tree(node.body, quiet, decided)
            self._tree([*node.orelse, *node.final], quiet, decided)
        elif isinstance(node, Yielded):
            self._tree(node.body, quiet, decided)
        elif isinstance(node, Jump):
            raise _Leave(node.kind)
        else:
            self._act(node, quiet, decided)

    def _inner(self, loop: Loop, quiet: bool, decided: Node | None) -> None:
        """A loop within a round, as often as its bound says."""
        items = evaluate(loop.iterated, self._at()) if loop.iterated is not None else UNKNOWN
        if not isinstance(items, range) or len(items) > 8:
            raise _Undecided
        indices = _indices(loop)
        for item in items:
            self.atoms.update(dict.fromkeys(indices, item))
            try:
                self._tree(loop.body, quiet, decided)
            except _Leave as leave:
                if leave.kind == "break":
                    return
                if leave.kind != "continue":
                    raise

    def _act(self, node: Node, quiet: bool, decided: Node | None) -> None:
        if isinstance(node, Event) and node.name == "synced-forward":
            self.forward_alone = quiet
        elif isinstance(node, Op) and node.name == "backward":
            alone = quiet and self.forward_alone is not False
            self.alone = node if alone else None
            self.exchanged = self.exchanged or not alone
        elif isinstance(node, Op) and node.name in _EXCHANGING:
            self.alone = None
        elif is_step(node):
            if self.alone is not None and self.found is None:
                self.found = Unexchanged(decided or node, node, self.alone)
            self.alone = None

    def _at(self) -> Valuation:
        return Valuation(0, 2, 2, self.atoms)


def _counts(node: Node) -> bool:
    """Whether a node takes part in the play: it exchanges, applies, or leaves."""
    if isinstance(node, (Event, Op, Fallible, Jump)):
        return (
            isinstance(node, Jump)
            or is_step(node)
            or (isinstance(node, Op) and (node.name == "backward" or node.name in _EXCHANGING))
            or (isinstance(node, Event) and node.name == "synced-forward")
        )
    return any(_counts(child) for tree in node.subtrees() for child in tree)


def _index_of(value: Value) -> Place | None:
    """The loop whose position a value is."""
    label = value.data[0] if value.tag == "sym" else None
    return label[1] if isinstance(label, tuple) and label[:1] == ("index",) else None


def _indices(loop: Loop) -> set[Hashable]:
    """The keys by which conditions in a loop know its position."""
    conditions = [node.condition for node in every_node(loop.body) if isinstance(node, Branch)]
    return {part.key for one in conditions for part in parts_of(one) if _index_of(part) == loop.place}


def _moves(value: Value, loop: Loop) -> bool:
    """Whether a value is another one in each round of a loop."""
    label = value.data[0] if value.tag == "sym" else None
    if not isinstance(label, tuple):
        return False
    return any(isinstance(part, Place) and _inside(part, loop.place) for part in label)


def _inside(place: Place, around: Place) -> bool:
    return place.filename == around.filename and around.row <= place.row <= around.end_row


def _opaque(value: Value) -> bool:
    return evaluate(value, Valuation(0, 2)) is UNKNOWN


def _sources(loop: Loop) -> Iterator[Value]:
    """What a loop runs over, and what is counted along with it."""
    value = loop.iterated
    while value is not None:
        yield value
        wraps = value.tag == "expr" and str(value.data[0]).rpartition(".")[2] in (
            "enumerate",
            "iter",
            "tqdm",
            "call:tqdm",
        )
        value = value.data[1][0] if wraps and value.data[1] else None


def _start(loop: Loop) -> int:
    """The first position of a loop."""
    named = re.search(r"\bstart=(\d+)", loop.text)
    if named is not None:
        return int(named[1])
    value = loop.iterated
    operator, operands = value.data if value is not None and value.tag == "expr" else ("", ())
    if operator not in ("enumerate", "range") or len(operands) < 2:
        return 0
    first = evaluate(operands[1 if operator == "enumerate" else 0], Valuation(0, 2))
    return first if isinstance(first, int) else 0
