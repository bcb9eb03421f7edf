"""Roots of collectives on groups that differ between ranks: a global rank is a member of one such group only."""

from __future__ import annotations

import re

from ..facts import lookup as facts
from ..traces.files import parts_of
from ..traces.nodes import Branch, Loop, Op, Tree
from ..values.evaluate import Valuation, evaluate, rank_dependent
from ..values.value import NONE, Value, alternatives, is_const
from .support_trees import Path, chosen, everybody_in, steps

_MESH = "torch.distributed.DeviceMesh"
_SUBGROUPS = "torch.distributed.new_subgroups"
_WORLD = re.compile(r"\bgroup=(?:\w+\.)*_*world_(?:pg|group|process_group)\b")
_LISTS = frozenset({"list", "tuple", "sorted"})


def numbered_alike(op: Op) -> bool:
    """Whether a rank has one number in the world and in the group of an operation: that of the first ranks, or of all.

    That of all ranks is known by its name where nothing else is.
    """
    if _WORLD.search(op.text):
        return True
    members = op.group.data[2] if op.group is not None and op.group.tag == "extobj" else None
    while members is not None and members.tag == "expr" and members.data[0] in _LISTS and members.data[1]:
        members = members.data[1][0]
    if members is None or members.tag != "expr" or members.data[0] != "range":
        return False
    first, *others = members.data[1]
    return not others or (len(others) == 1 and is_const(first) and first.data[0] == 0)


def one_for_all_groups(root: Value, group: Value, path: Path, tree: Tree) -> bool:
    """Whether ranks of different groups all come to a call with the same number as root."""
    if not isinstance(root_of_all(root), int):
        return False
    if any(isinstance(node, Branch) and rank_dependent(node.condition) for node, _ in path):
        return False
    by_rank = any(t.kind in ("rank", "local-rank") for t in group.taint)
    by_rank = by_rank and not _is_one(group) and not _made_once(group, tree)
    return by_rank or any(_own(one) or _of_mesh(one) for one in alternatives(group))


def _is_one(group: Value) -> bool:
    """Whether the members are the same whoever asks: ranks differ in whether they hold the group at all."""
    known = {_members(group, Valuation(rank, 4, 2)) for rank in range(4)}
    return None not in known and len(known) == 1


def _made_once(group: Value, tree: Tree) -> bool:
    """Whether a rank has the one group that the program makes, outside loops, or none at all."""
    groups = {one.key: one for one in alternatives(group) if one.key != NONE.key}
    if len(groups) != 1:
        return False
    (only,) = groups.values()
    origin = only.data[1] if only.tag == "extobj" else None
    if not isinstance(origin, tuple) or len(origin) < 2:
        return False
    made = [step for step in steps(tree) if isinstance(step.node, Op) and step.node.place == origin[1]]
    return len(made) == 1 and not any(isinstance(node, Loop) for node, _ in made[0].path)


def _members(group: Value, at: Valuation) -> tuple[int, ...] | None:
    one = chosen(group, at)
    return None if one is None else everybody_in(one, at)


def root_of_all(root: Value) -> object:
    """The number that all ranks of a world name, where it is written down or computed from the world size alone."""
    if root.taint or not all(part.tag in ("const", "world", "expr") for part in parts_of(root)):
        return None
    return evaluate(root, Valuation(0, 4, 2))


def _own(group: Value) -> bool:
    """Whether a group was asked for as the one that this rank belongs to."""
    origin = group.data[1] if group.tag == "extobj" else None
    if not isinstance(origin, tuple) or not isinstance(origin[0], str):
        return False
    if origin[0].startswith(_SUBGROUPS):
        return bool(origin[-1] == 0)  # the first of the pair; the second is the list of all
    fact = facts.function(origin[0])
    return fact is not None and fact.event == "own-group"


def _of_mesh(group: Value) -> bool:
    """Whether a group is that of one dimension of a mesh with several: ranks have different ones."""
    if group.tag == "extobj" and group.data[2] is not None:
        group = group.data[2]
    if group.tag != "expr" or group.data[0] not in ("call:get_group", "dimension"):
        return False
    mesh, *dimension = group.data[1]
    if mesh.tag == "expr" and mesh.data[0] == "getitem":
        mesh, *dimension = mesh.data[1]
    if not dimension or mesh.tag != "extobj" or mesh.data[0] != _MESH or mesh.data[2] is None:
        return False
    sizes = mesh.data[2].data if mesh.data[2].tag == "tuple" else ()
    return sum(not (is_const(size) and size.data[0] == 1) for size in sizes) > 1
