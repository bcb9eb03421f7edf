"""Functions that ``torch.multiprocessing.spawn`` runs: their first argument counts the processes of one host.

Terminology: a process's *number* is what ``spawn`` hands over first. The world is *spread over hosts* where its size is
a product in which the hosts are named, and another number than ``nprocs``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Event, every_node
from ..values.value import parts_of
from .support_events import argument
from .support_processes import SPAWN

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..names.functions import FunctionInfo
    from ..names.modules import Module
    from ..values.value import Value


class Spawned(NamedTuple):
    """The call that runs a function in several processes, and the file that it stands in."""

    event: Event
    module: Module


def spawned_by(analysis: Analysis) -> dict[int, Spawned]:
    """The functions that ``spawn`` runs, by their identity."""
    found: dict[int, Spawned] = {}
    for root in analysis.roots:
        if "spawn" not in root.contents.events:
            continue
        for node in every_node(root.tree):
            if isinstance(node, Event) and node.name == "spawn" and node.call in SPAWN:
                called = argument(node, 0, "fn")
                if called is not None and called.tag == "func":
                    found.setdefault(id(called.data[0]), Spawned(node, root.module))
    return found


def numbered(function: FunctionInfo, rank: Value) -> bool:
    """Whether a value is the first parameter of a function as it was given."""
    first = next((p.name for p in function.params if p.name != function.self_name), None)
    if first is None:
        return False
    if rank.tag == "sym":
        return bool(rank.data[0] == ("param", function.full_name, first))
    row = function.header.lineno
    given = (t for t in rank.taint if t.place.filename == function.module.filename and t.place.row == row)
    return rank.tag in ("rank", "local_rank") and any(taint.text == first for taint in given)


def spread_over_hosts(
    function: FunctionInfo, world: Value, call: Spawned, names_hosts: Callable[[str], bool]
) -> bool:
    """Whether the world of a function that ``spawn`` runs has processes on several hosts."""
    world = _given(function, world, call)
    started = argument(call.event, 2, "nprocs")
    if started is not None and (started.key == world.key or started.tag == world.tag == "world"):
        return False
    if world.tag == "expr" and world.data[0] == "*":
        return any(names_hosts(str(part.data)) for part in parts_of(world))
    name = _kept_in(world)
    return name != "" and (started is None or _kept_in(started) != name) and _product(call, name, names_hosts)


def _given(function: FunctionInfo, value: Value, call: Spawned) -> Value:
    """What the call hands over for a parameter; other values as they are."""
    label = value.data[0] if value.tag == "sym" else None
    given = argument(call.event, 1, "args")
    if not isinstance(label, tuple) or label[:2] != ("param", function.full_name) or given is None:
        return value
    names = [p.name for p in function.params if p.name != function.self_name]
    place = names.index(label[2]) - 1 if label[2] in names else -1
    return given.data[place] if given.tag == "tuple" and 0 <= place < len(given.data) else value


def _kept_in(world: Value) -> str:
    """The attribute in which a number is kept (``args.world_size``), or ""."""
    if world.tag == "world":
        return "world_size"
    operator = str(world.data[0]) if world.tag == "expr" else ""
    return operator.removeprefix("attr:") if operator.startswith("attr:") else ""


def _product(call: Spawned, name: str, names_hosts: Callable[[str], bool]) -> bool:
    """Whether the file that spawns the processes puts a product with the hosts into an attribute."""
    products = [
        node.value
        for node in walk(call.module.tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == name for target in node.targets)
    ]
    return bool(products) and all(
        isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and names_hosts(unparse(value))
        for value in products
    )
