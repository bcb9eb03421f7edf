"""Wrapped modules that communicate in a group of their own: ``DistributedDataParallel(model, process_group=group)``.

The group is named once, where the module is wrapped. Calling the module, and the backward pass of what it has computed,
communicate in the same one. A backward pass of which nobody knows the module has a group that nobody knows either, in a
file that names one for a module.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..values.value import NONE, Value, parts_of, symbol
from .facts_values import argument
from .frame import Frame

if TYPE_CHECKING:
    from ..facts.fact import Fact

_WRAPS = "wrap-module"
_USES = frozenset({"synced-forward", "backward"})
_NAMES = re.compile(
    rb"(?:DistributedDataParallel|FullyShardedDataParallel|DDP|FSDP)"
    rb"\((?:[^()]|\([^()]*\)){0,600}process_group *=(?! *None)"
)


def group_of(
    frame: Frame, fact: Fact, receiver: Value | None, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """The group in which a call communicates: the one that it names, or that its module was wrapped with."""
    if fact.group is not None or fact.event not in _USES or receiver is None:
        return argument(fact.group, args, kwargs)
    known = frame.machine.own_groups
    found = next((known[part.key] for part in parts_of(receiver) if part.key in known), None)
    content = frame.module.source.content
    if found is None and fact.event == "backward" and b"process_group" in content and _NAMES.search(content):
        return symbol(("group of a module", frame.module.name))
    return found


def note_group(
    frame: Frame,
    fact: Fact,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    result: Value,
) -> None:
    """Remember the group of a module that is wrapped, and of what such a module has computed."""
    if fact.event == _WRAPS or fact.event == "synced-forward":
        group = group_of(frame, fact, receiver, args, kwargs)
        frame.machine.own_groups[result.key] = NONE if group is None else group
