"""Outcomes: what a function gives, out of all the places where it may return.

Terminology: an *outcome* is a path, a value and a state; its *path* are the conditions, in order, under which it is
come to, as far as they still hold there: those of blocks that were left again are gone. Invariant: an outcome is
taken under what tells it from all later ones. Cost: linear in the lengths of all paths.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..values.value import (
    NONE,
    TRUE,
    Place,
    Taints,
    Value,
    choice,
    expression,
    negate,
    retaint,
    symbol,
    union,
)
from .state import State, join

if TYPE_CHECKING:
    from .frame import Frame

Step = tuple[Value, bool]
Ways = dict[Hashable, Any]  # what follows a beginning of some paths; the key None stands for the end of one


def return_value(frame: Frame, place: Place) -> tuple[Value, State | None]:
    """The joined value and state of everything a frame may return, including falling off its end."""
    outcomes = list(frame.returns)
    if frame.state is not None:
        outcomes.append((tuple(frame.path), NONE, frame.state))
    if not outcomes:
        return symbol(("never", place)), None
    path, value, state = outcomes[-1]
    later: Ways = {}
    for earlier_path, earlier, earlier_state in reversed(outcomes[:-1]):
        _note(path, later)
        path = earlier_path
        telling = list(_telling(path, later)) or path
        condition = conjunction([(_of_others(test, frame), holds) for test, holds in telling], place)
        value = choice(condition, earlier, value)
        state = join(earlier_state, state, condition) or state
    return value, state


def _note(path: Sequence[Step], ways: Ways) -> None:
    for condition, holds in path:
        ways = ways.setdefault((condition.key, holds), {})
    ways[None] = True


def _telling(path: Sequence[Step], ways: Ways) -> Iterator[Step]:
    """What on a path tells it from some others.

    A test whose other answer never returns (a fatal precondition) tells no outcomes apart. Where an outcome comes from
    neither answer, it stands behind a block that the path is in: what is asked in the block tells, to the last step.
    """
    left = False
    for condition, holds in path:
        step, other = (condition.key, holds), (condition.key, not holds)
        left = left or any(way not in (step, other) for way in ways)
        if left or other in ways:
            yield condition, holds
        ways = ways.get(step, {})


def _of_others(test: Value, frame: Frame) -> Value:
    """A test without the reasons that a function's own answer further in adds to those of its other returns."""
    function = frame.function
    label = test.data[0] if test.tag == "sym" else None
    if not isinstance(label, tuple) or function is None:
        return test
    if label[:2] != ("recursive", function.full_name) or not isinstance(label[-1], Place):
        return test
    return retaint(test, frozenset(t for t in test.taint if t.kind in ("rank", "group-rank")), test.trip)


def conjunction(path: Sequence[Step], place: Place) -> Value:
    """The condition of a path as one value."""
    terms = [condition if holds else negate(condition) for condition, holds in path]
    if not terms:
        return TRUE
    if len(terms) == 1:
        return terms[0]
    if sum(t.size for t in terms) > 30:
        return symbol(("path", place, len(terms)), union(*(t.taint for t in terms)))
    return expression("and", terms)


def given_inside(frame: Frame, first: int, depth: int, condition: Value, *, holds: bool = True) -> None:
    """The returns from number ``first`` on stand in a block that is come to under a further condition."""
    for position in range(first, len(frame.returns)):
        path, value, state = frame.returns[position]
        frame.returns[position] = ((*path[:depth], (condition, holds), *path[depth:]), value, state)


def given_in_round(frame: Frame, first: int, depth: int, place: Place, trip: Taints) -> None:
    """The returns from number ``first`` on stand in a loop, which may have no round.

    Of those that further tests lead to, the tests say enough: the last round may bring what they ask for, or none.
    """
    condition = symbol((_ROUND, place), trip)
    for position in range(first, len(frame.returns)):
        path, value, state = frame.returns[position]
        if all(_is_round(step) for step, _ in path[depth:]):
            frame.returns[position] = ((*path[:depth], (condition, True), *path[depth:]), value, state)


_ROUND = "round of a loop"


def _is_round(condition: Value) -> bool:
    label = condition.data[0] if condition.tag == "sym" else None
    return isinstance(label, tuple) and label[0] == _ROUND
