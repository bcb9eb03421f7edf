"""The region guard: no collective starts on a thread that is inside rank-local work.

Between ``switch_on()`` and ``switch_off()`` collectives begun on the calling thread raise
``CollectiveInRankLocalError`` instead of starting. ``switch_on`` returns whether there is anything to switch
off again; before torch.distributed is imported there is nothing to guard.

Mechanisms, the first that works on this torch, shown by a trial when the guard is installed:
``generic-key`` and ``pre-dispatch-key`` (``guard_dispatch``) cost nothing outside regions; ``mode``
(``guard_mode``) is the slow one for a torch without them. What is no operator (``new_group``,
``split_group``, ``init_process_group``) is wrapped. ``SPMDGUARD_REGION_GUARD`` names a mechanism, or ``off``.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from spmdguard.errors import CollectiveInRankLocalError
from spmdguard.format import find_user_frame, format_place
from spmdguard.group.torch_access import describe_group

NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "symm_mem")
_LOCAL_OPERATORS = frozenset({"wait_tensor", "_wrap_tensor_autograd", "check_for_nan"})
MECHANISMS = ("generic-key", "pre-dispatch-key", "mode")
_CREATORS = ("_new_group_with_tag", "_new_process_group_helper", "split_group")


class _Creating(threading.local):
    depth = 0


_creating = _Creating()
_lock = threading.Lock()
installed: str | None = None


def _no_region() -> str | None:
    return None


find_region: Callable[[], str | None] = _no_region
on_install: list[Callable[[], None]] = []
on_create: list[Callable[[str], None]] = []
"""Told of every group that is created."""


def refuse(operation: str, group: Any) -> CollectiveInRankLocalError:
    """The error for a collective begun inside the calling thread's region."""
    return CollectiveInRankLocalError(
        operation=operation,
        group="an unknown group" if group is None else describe_group(group),
        region=find_region() or "rank-local work",
        place=format_place(find_user_frame()),
    )


def _probe() -> bool:
    """First form of ``switch_on``: installs the guard once torch.distributed is there."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None or not hasattr(c10d, "GroupMember"):
        return False
    with _lock:
        if installed is None:
            _install(c10d)
    return switch_on()


def _nothing() -> None:
    return


def _never() -> bool:
    return False


switch_on: Callable[[], bool] = _probe
switch_off: Callable[[], None] = _nothing


def _install(c10d: Any) -> None:
    global installed, switch_on, switch_off
    wanted = os.environ.get("SPMDGUARD_REGION_GUARD", "")
    if wanted not in ("", *MECHANISMS, "off"):
        raise ValueError(
            f"SPMDGUARD_REGION_GUARD must be one of {', '.join(MECHANISMS)}, off; got {wanted!r}"
        )
    if wanted == "off":
        installed, switch_on = "off", _never
        return
    _wrap_creators(c10d)
    for also in on_install:
        also()
    for mechanism in [wanted] if wanted else MECHANISMS:
        pair = _make_switch(mechanism)
        if pair is not None:
            installed = mechanism
            switch_on, switch_off = pair
            return
    raise RuntimeError(
        f"the region guard {wanted!r} does not work on this torch; unset SPMDGUARD_REGION_GUARD"
    )


def _make_switch(mechanism: str) -> tuple[Callable[[], bool], Callable[[], None]] | None:
    if mechanism == "mode":
        from spmdguard.group import guard_mode

        return guard_mode.switch_on, guard_mode.switch_off
    from spmdguard.group import guard_dispatch

    return guard_dispatch.make_switch(mechanism)


def is_collective(namespace: str, operator: str) -> bool:
    """Whether an operator communicates; waiting for one that has begun does not."""
    if namespace == "symm_mem":
        return any(part in operator for part in ("reduce", "gather", "all_to_all", "barrier", "broadcast"))
    return namespace in NAMESPACES and operator not in _LOCAL_OPERATORS


def find_group(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The process group among an operator's arguments: a boxed object, or the name that comes last."""
    import torch
    import torch.distributed as dist

    for value in args:
        if isinstance(value, torch.ScriptObject):
            try:
                return dist.ProcessGroup.unbox(value)
            except Exception:
                continue
    names = [value for value in (*args, *kwargs.values()) if isinstance(value, str)]
    return names[-1] if names else None


def _wrap_creators(c10d: Any) -> None:
    """Creating a group is a collective but no operator."""
    for name in _CREATORS:
        original = getattr(c10d, name, None)
        if original is None:
            continue
        shown = {"_new_group_with_tag": "new_group", "_new_process_group_helper": "init_process_group"}.get(
            name, name
        )
        setattr(c10d, name, _guarded_creator(original, shown))


def _guarded_creator(original: Callable[..., Any], shown: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def creator(*args: Any, **kwargs: Any) -> Any:
        if find_region() is not None:
            raise refuse(shown, None)
        if not on_create or _creating.depth:
            return original(*args, **kwargs)
        for see in on_create:
            see(shown)
        _creating.depth += 1  # one creator calls another
        try:
            return original(*args, **kwargs)
        finally:
            _creating.depth -= 1

    return creator
