"""Which rule reports which divergence: every divergence has exactly one owner.

Terminology: the *owner* of a divergence is the code of the rule that reports it. It follows from the shape
(what the arms do) and the kind of the strongest taint (why the ranks may disagree). Other divergences of the
same condition are other objects and may have other owners.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING

from ..traces.handlers import handles_memory
from ..traces.matching import shared_conditions
from ..traces.nodes import Branch, Jump, Node, Op, Region, Try, every_node
from ..values.evaluate import UNKNOWN, Valuation, evaluate, truth
from .support_trees import WORLDS, waits

if TYPE_CHECKING:
    from ..traces.divergence import Divergence
    from ..values.value import Place, Value

RANK_KINDS = ("rank", "group-rank")
_BY_KIND = {
    "time": "SPG302",
    "random": "SPG303",
    "filesystem": "SPG304",
    "data": "SPG305",
    "environment": "SPG306",
    "signal": "SPG308",
    "order": "SPG403",
    "exception": "SPG202",
}
NEW_GROUP = ("new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group", "init_device_mesh")


def owner(divergence: Divergence) -> str:
    """The code of the rule that reports a divergence."""
    shape, kind = divergence.shape, divergence.kind
    by_rank = kind in RANK_KINDS
    if by_rank and about_membership(divergence):
        return "SPG106"
    if shape == "handler":
        return "SPG206"
    if shape == "swallow":
        if "again" in divergence.extra:
            return "SPG202"
        if meets_in_handler(divergence) is not None:
            return "SPG206"
        return "SPG203" if about_memory(divergence) else "SPG202"
    if shape == "trip":
        return _loop_owner(divergence)
    if shape == "exit":
        if divergence.jump is not None and divergence.jump.kind == "raise":
            return "SPG102" if divergence.form in ("next", "missing") and divergence.caught else "SPG205"
        if is_stop_flag(divergence):
            return "SPG301"
        return "SPG102" if by_rank or kind in ("data", "exception") else _BY_KIND.get(kind, "SPG102")
    if not by_rank:
        return _BY_KIND.get(kind, "SPG305")
    if shape == "order":
        return "SPG103"
    if divergence.form in ("short-circuit", "ternary"):
        return "SPG105"
    return "SPG104" if divergence.through_call else "SPG101"


def is_stop_flag(divergence: Divergence) -> bool:
    """Whether a loop is left by a flag that an exception on this rank has set: a stop that nobody agreed on."""
    if divergence.jump is None or divergence.jump.kind != "break":
        return False
    flag = divergence.condition_text.removeprefix("not ").replace(".", "").replace("_", "")
    return flag.isalnum() and any(taint.kind == "exception" for taint in divergence.taints)


def about_membership(divergence: Divergence) -> bool:
    """Whether ranks disagree on who makes a group, or on a group whose members are known."""
    operation = divergence.operation
    if operation is None or divergence.shape not in ("arm", "order", "exit"):
        return False
    if operation.name in NEW_GROUP:
        return divergence.shape == "arm"
    return divergence.subgroup and members_part(divergence) is not None


def members_part(divergence: Divergence) -> bool | None:
    """Whether members of the operation's group disagree on the condition; None where it cannot be told."""
    group = divergence.operation.group if divergence.operation is not None else None
    condition = divergence.condition
    if group is None or condition is None or group.tag != "extobj" or group.data[2] is None:
        return None
    known = [_members_part(divergence, condition, group, truths) for truths in _settled(condition)]
    return None if None in known else any(known)


def _settled(condition: Value) -> Iterator[dict[Hashable, bool]]:
    """Each truth of the parts of a condition that are the same on every rank."""
    shared = shared_conditions(condition)
    for truths in product((True, False), repeat=len(shared)):
        yield dict(zip(shared, truths, strict=True))


def _members_part(
    divergence: Divergence, condition: Value, group: Value, truths: dict[Hashable, bool]
) -> bool | None:
    parted = False
    for world, local in WORLDS:
        verdicts: set[object] = set()
        for rank in range(world):
            at = Valuation(rank, world, local, truths)
            members = evaluate(group.data[2], at)
            if not isinstance(members, (tuple, list, range, set, frozenset)):
                return None
            if rank in members:
                count = evaluate(condition, at) if divergence.shape == "trip" else truth(condition, at)
                verdicts.add(None if count is UNKNOWN else count)
        if None in verdicts:
            return None
        parted = parted or len(verdicts) > 1
    return parted


def _loop_owner(divergence: Divergence) -> str:
    if divergence.form != "while":
        return "SPG401"
    return {"time": "SPG302", "signal": "SPG308"}.get(divergence.kind, "SPG402")


def claimed(divergences: Iterable[Divergence], code: str) -> Iterator[Divergence]:
    """The divergences that the rule ``code`` reports."""
    return (d for d in divergences if owner(d) == code)


def about_memory(divergence: Divergence) -> bool:
    """Whether the handler that swallows is there for running out of device memory."""
    node = divergence.node
    if not isinstance(node, Try):
        return False
    for handler in node.handlers:
        if handler.place == divergence.condition_place:
            return handles_memory(handler)
    return False


def meets_in_handler(divergence: Divergence) -> Op | None:
    """A collective that the handler itself calls before it leaves by raising again, if there is one."""
    node = divergence.node
    if not isinstance(node, Try):
        return None
    handler = next((h for h in node.handlers if h.place == divergence.condition_place), None)
    if handler is None or not handler.body:
        return None
    last = handler.body[-1]
    if not (isinstance(last, Jump) and last.kind in ("raise", "exit")):
        return None
    return next(
        (
            n
            for n in every_node(handler.body)
            if isinstance(n, Op) and waits(n) and n.name != "destroy_process_group"
        ),
        None,
    )


def asks(divergence: Divergence) -> bool:
    """Whether the ranks part on a flag by which the trainer is asked for something."""
    return divergence.operation is not None and divergence.operation.kind == "request"


def is_entry(operation: Op | None) -> bool:
    """Whether an operation puts an entry into a metric, of which all ranks must have as many."""
    return operation is not None and operation.kind == "request" and operation.name.startswith("metric")


def where(divergence: Divergence) -> str:
    """On which ranks the diverging thing happens: "where `rank == 0`", or "... is false"."""
    node, text = divergence.node, divergence.condition_text
    if isinstance(node, Try):
        return f"when `{text}` catches an exception"
    if isinstance(node, Branch):
        target: Node | None = divergence.jump if divergence.shape == "exit" else divergence.operation
        in_else = not any(n is target for n in every_node(node.then)) and any(
            n is target for n in every_node(node.orelse)
        )
        if node.form in ("decorator", "with"):
            return f"outside `{text}`" if in_else else f"on the ranks that `{text}` lets in"
        if in_else or node.form == "assert":
            return f"where `{text}` is false"
    return f"where `{text}`"


def leaving(divergence: Divergence) -> str:
    """The exit in words, as the beginning of a sentence: "this rank returns"."""
    jump = divergence.jump
    if jump is None:
        return "some ranks leave"
    if jump.place != divergence.place:
        return f"`{divergence.text}` leaves"
    words = {"exit": "ends the process"}
    return f"`{jump.text}` {words.get(jump.kind, 'leaves')}"


def awaited(divergence: Divergence) -> str:
    """What the ranks that stay go on to."""
    if divergence.operation is not None:
        return f"`{divergence.operation.text}`"
    return "the collectives of the next round"


def leaves_out_exchange(divergence: Divergence) -> bool:
    """Whether one arm runs ``backward`` under ``no_sync`` and the other does not."""
    node = divergence.node
    if not isinstance(node, Branch):
        return False
    first, second = (list(every_node(arm)) for arm in (node.then, node.orelse))
    return _has_no_sync(first) is not _has_no_sync(second) and all(
        any(isinstance(inner, Op) and inner.name == "backward" for inner in arm) for arm in (first, second)
    )


def _has_no_sync(nodes: Iterable[Node]) -> bool:
    return any(isinstance(node, Region) and node.kind == "no-sync" for node in nodes)


def where_decided(divergence: Divergence) -> Place:
    """The ``if``, ``while`` or ``for`` that decides; else the operation or the exit."""
    return divergence.condition_place if divergence.form in ("if", "while", "for") else divergence.place


def where_repeated(divergence: Divergence) -> Place:
    """Where a loop with too many rounds is reported: a collective that is written in it, else the loop itself.

    A forward pass, or a call that leads to a collective, looks as harmless in the hundredth round as in the first. Of a
    loop in a generator the condition is what decides; one over items leaves that to the reader's loop.
    """
    operation, loop, place = divergence.operation, where_decided(divergence), divergence.place
    hidden = operation is not None and (operation.implicit or divergence.through_call)
    within = loop.filename == place.filename and loop.row <= place.row <= loop.end_row
    told = within or divergence.form == "while"
    return loop if hidden and told and divergence.shape == "trip" else place


def decided(divergence: Divergence, reason: str) -> str:
    """The message of a divergence that something else than the rank decides."""
    condition = divergence.condition_text
    if divergence.shape == "exit":
        return (
            f"{leaving(divergence)} {where(divergence)}, which depends on {reason}, "
            f"while the other ranks go on to {awaited(divergence)}"
        )
    if divergence.shape == "trip":
        return f"the number of rounds of `{condition}` depends on {reason}; each calls `{divergence.text}`"
    if divergence.form == "cache":
        return f"`{divergence.text}` runs only where the result of `{condition}` is not kept yet: its key is {reason}"
    if divergence.shape == "order" and leaves_out_exchange(divergence):
        return f"`backward` exchanges gradients on some ranks only: `{condition}` depends on {reason}"
    if divergence.shape == "order":
        return f"`{condition}` depends on {reason}, and its two arms call different collectives"
    return f"`{divergence.text}` runs only {where(divergence)}, which depends on {reason}"
