"""What the rules share: from a divergence to a finding."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model import Certainty, Finding, Location, RuleInfo, Site, TrailStep
from ..traces.judged import group_key, variance
from ..traces.nodes import Branch, Op

if TYPE_CHECKING:
    from ..traces.divergence import Divergence
    from ..traces.nodes import Tree
    from ..values.value import Place, Taint, Value

_REASONS = {
    "rank": "differs between ranks",
    "group-rank": "differs between ranks",
    "time": "reads this process's own clock",
    "random": "is drawn by each process for itself",
    "filesystem": "asks the file system, which each process may see differently",
    "data": "is this rank's own data",
    "environment": "differs between hosts or processes",
    "exception": "is raised on one rank alone",
    "signal": "is set by a signal that reaches one process",
    "order": "has an order that differs between processes",
}


def site(place: Place) -> Site:
    """A place as a site (columns from 1)."""
    return Site(
        place.filename,
        Location(place.row, place.column + 1),
        Location(place.end_row, place.end_column + 1),
    )


def trail(divergence: Divergence) -> tuple[TrailStep, ...]:
    """From the sources of rank variance over the condition to the calls that lead there."""
    steps: list[TrailStep] = []
    for taint in divergence.taints[:3]:
        steps.append(TrailStep(site(taint.place), source_text(taint)))
    if divergence.condition_text and divergence.condition_place != divergence.place:
        steps.append(TrailStep(site(divergence.condition_place), f"`{divergence.condition_text}` decides"))
    for call in divergence.calls[:4]:
        steps.append(TrailStep(site(call.place), f"in the call `{call.text}`"))
    if divergence.operation is not None and divergence.operation.place != divergence.place:
        operation = divergence.operation
        steps.append(TrailStep(site(operation.place), f"`{operation.text}` is the collective"))
    return tuple(steps)


def source_text(taint: Taint) -> str:
    """Why a source makes values rank-varying."""
    return f"`{taint.text.strip('`')}` {_REASONS.get(taint.kind, 'differs between ranks')}"


def from_divergence(
    rule: RuleInfo,
    divergence: Divergence,
    message: str,
    help_text: str,
    *,
    certainty: Certainty | None = None,
    place: Place | None = None,
) -> Finding:
    """A finding at ``place``, or else at the divergence's own."""
    sure: Certainty = certainty or divergence.certainty  # type: ignore[assignment]
    by_rank = divergence.subgroup and divergence.kind in ("rank", "group-rank")
    if by_rank and sure != "possible" and not telling_on_group(divergence):
        sure = "possible"
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        certainty=sure,
        message=message,
        help=help_text,
        site=site(place or divergence.place),
        trail=trail(divergence),
        diverging=divergence.diverging,
        others=divergence.others,
        marks=(("condition", site(divergence.condition_place)), *varying_conjuncts(divergence)),
    )


def moved(found: Finding, place: Place, text: str) -> Finding:
    """The finding at another place, where its own becomes the last step of the trail, with a text."""
    kept = tuple(step for step in found.trail if step.site != site(place))
    return replace(found, site=site(place), trail=(*kept, TrailStep(found.site, text)))


def varying_conjuncts(divergence: Divergence) -> Iterator[tuple[str, Site]]:
    """Which operands of a condition ``a and b`` may differ between ranks: "varying of 2 0" for the first."""
    condition = divergence.condition
    if condition is not None and condition.tag == "expr" and condition.data[0] == "and":
        operands = condition.data[1]
        for index, operand in enumerate(operands):
            if variance(operand.taint):
                yield f"varying of {len(operands)} {index}", site(divergence.condition_place)


def telling_on_group(divergence: Divergence) -> bool:
    """Whether it can be told, of a group with unknown members, that these part among themselves."""
    return within_group(divergence) or rounds_part(divergence) or swapped(divergence)


def swapped(divergence: Divergence) -> bool:
    """Whether both arms make the same calls on the same groups, in another order: no membership explains that."""
    node = divergence.node
    if divergence.shape != "order" or not isinstance(node, Branch):
        return False
    first, second = _calls_in(node.then), _calls_in(node.orelse)
    return first != second and len(first) > 1 and sorted(first, key=repr) == sorted(second, key=repr)


def _calls_in(arm: Tree) -> list[tuple[str, Hashable]]:
    """The operations of an arm, with their groups."""
    found: list[tuple[str, Hashable]] = []
    for node in arm:
        if isinstance(node, Op) and node.kind != "point-to-point":
            found.append((node.name, group_key(node)))
        for child in node.subtrees():
            found.extend(_calls_in(child))
    return found


def within_group(divergence: Divergence) -> bool:
    """Whether the rank that decides is the one in the operation's own group: its members part among themselves."""
    operation = divergence.operation
    if operation is None or operation.group is None or divergence.condition is None:
        return False
    stack = [divergence.condition]
    found = False
    while stack:
        value = stack.pop()
        if value.tag == "group_rank":
            found = found or value.data[0].key == operation.group.key
        elif value.tag == "expr":
            operator, operands = value.data
            if operator in ("<", "<=", ">=", ">", "in", "not in", "is", "is not") or _asks_for_membership(
                operands
            ):
                return False
            stack.extend(operands)
        elif value.tag == "ite":
            stack.extend(value.data)
    return found


def rounds_part(divergence: Divergence) -> bool:
    """Whether members of an operation's group run the loop around it a different number of times."""
    from .support_claims import members_part

    return divergence.shape == "trip" and members_part(divergence) is True


def _asks_for_membership(operands: tuple[Value, ...]) -> bool:
    """``get_rank(group) == -1``: who is a member at all."""
    return any(v.tag == "const" and isinstance(v.data[0], int) and v.data[0] < 0 for v in operands)


def operation_text(divergence: Divergence) -> str:
    """The collective that is at stake, in the user's words."""
    operation = divergence.operation
    return operation.text if operation is not None else "a collective"


def is_rank(divergence: Divergence) -> bool:
    """Whether the rank itself decides."""
    return divergence.kind in ("rank", "group-rank")


def selected(divergences: list[Divergence], *shapes: str) -> Iterator[Divergence]:
    """The divergences of some shapes."""
    return (d for d in divergences if d.shape in shapes)
