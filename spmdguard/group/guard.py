"""The region guard: no collective starts on a thread that is inside rank-local work.

Between ``switch_on()`` and ``switch_off()`` collectives begun on the calling thread raise
``CollectiveInRankLocalError`` instead of starting. ``switch_on`` returns whether there is anything to switch
off again; before torch.distributed is imported there is nothing to guard.

Mechanism. Kernels for the ``c10d`` and ``_c10d_functional`` operators are registered at the dispatch key
PreDispatch, which is off by default; the switch turns the key on for its thread, so that nothing outside a
region costs anything and other operators inside fall through (torch 2.13: 0.3 us, operators 1.0x).
Where the key or the thread-local switch is missing, a ``TorchDispatchMode`` does the same, slower.
What is no operator (``new_group``, ``split_group``, ``init_process_group``) is wrapped.
``SPMDGUARD_REGION_GUARD`` = ``dispatch`` | ``mode`` | ``off`` overrides the choice.
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
_CREATORS = ("_new_group_with_tag", "_new_process_group_helper", "split_group")

_lock = threading.Lock()
_kernels: list[Any] = []
installed: str | None = None


def _no_region() -> str | None:
    return None


find_region: Callable[[], str | None] = _no_region
on_install: list[Callable[[], None]] = []


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
    if wanted not in ("", "dispatch", "mode", "off"):
        raise ValueError(f"SPMDGUARD_REGION_GUARD must be dispatch, mode or off, got {wanted!r}")
    if wanted == "off":
        installed, switch_on = "off", _never
        return
    _wrap_creators(c10d)
    for also in on_install:
        also()
    pair = _dispatch_switch() if wanted in ("", "dispatch") else None
    if pair is not None:
        switch_on, switch_off = pair
        installed = "dispatch"
    else:
        from spmdguard.group import guard_mode

        switch_on, switch_off = guard_mode.switch_on, guard_mode.switch_off
        installed = "mode"


def _dispatch_switch() -> tuple[Callable[[], bool], Callable[[], None]] | None:
    """Register the kernels and return the switch; None where this torch cannot do it, shown by a trial."""
    import torch

    include = getattr(torch._C, "_dispatch_tls_set_dispatch_key_included", None)
    is_included = getattr(torch._C, "_dispatch_tls_is_dispatch_key_included", None)
    key = getattr(torch._C.DispatchKey, "PreDispatch", None)
    if include is None or is_included is None or key is None:
        return None

    def on() -> bool:
        if is_included(key):
            return False
        include(key, True)
        return True

    def off() -> None:
        include(key, False)

    try:
        _register_kernels(torch)
        _let_higher_order_operators_through(torch, key)
        if _refuses(torch, on, off):
            return on, off
    except Exception:
        _kernels.clear()
    _kernels.clear()
    return None


def _refuses(torch: Any, on: Callable[[], bool], off: Callable[[], None]) -> bool:
    on()
    try:
        torch.ops._c10d_functional.all_reduce(torch.zeros(1), "sum", "spmdguard trial")
    except CollectiveInRankLocalError:
        return True
    except Exception:
        return False
    finally:
        off()
    return False


def _register_kernels(torch: Any) -> None:
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, _, operator = name.partition("::")
        operator, _, overload = operator.partition(".")
        if not is_collective(namespace, operator):
            continue
        library = torch.library.Library(namespace, "IMPL")
        library.impl(f"{operator}.{overload}" if overload else operator, _kernel(operator), "PreDispatch")
        _kernels.append(library)


def is_collective(namespace: str, operator: str) -> bool:
    """Whether an operator communicates; waiting for one that has begun does not."""
    if namespace == "symm_mem":
        return any(part in operator for part in ("reduce", "gather", "all_to_all", "barrier", "broadcast"))
    return namespace in NAMESPACES and operator not in _LOCAL_OPERATORS


def _kernel(operator: str) -> Callable[..., Any]:
    shown = operator.rstrip("_")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        raise refuse(shown, find_group(args, kwargs))

    return kernel


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
        return original(*args, **kwargs)

    return creator


def _let_higher_order_operators_through(torch: Any, key: Any) -> None:
    """Higher-order operators (flex_attention, cond) have no PreDispatch kernel and would fail in a region."""
    operator_class = torch._ops.HigherOrderOperator
    original = operator_class.dispatch
    keys = torch._C.DispatchKeySet(key)
    exclude = torch._C._ExcludeDispatchKeyGuard
    num_modes = torch._ops._len_torch_dispatch_stack_pre_dispatch

    @functools.wraps(original)
    def dispatch(self: Any, /, dispatch_key: Any, *args: Any, **kwargs: Any) -> Any:
        if dispatch_key == key and num_modes() == 0 and find_region() is not None:
            with exclude(keys):
                return self(*args, **kwargs)
        return original(self, dispatch_key, *args, **kwargs)

    operator_class.dispatch = dispatch
