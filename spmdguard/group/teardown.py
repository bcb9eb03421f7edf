"""End the process groups of this process in bounded time, and tell the others why through the store.

``destroy_process_group`` after a failure on one rank can itself block on NCCL (pytorch#196968), so it runs
in a helper thread. On NCCL an abort comes first in an emergency: it does not wait for work under way. gloo
has no abort: it frees the others when the last reference to the group is gone; a DistributedDataParallel
keeps one until the process ends (torch 2.13).
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

from spmdguard.errors import TeardownTimeout
from spmdguard.group.bounded import DidNotReturn, call_bounded
from spmdguard.group.torch_access import default_group, loaded_c10d

_STORE_TIMEOUT_S = 2.0
_HOLD_STORE_S = 3.0


def destroy_groups(timeout_s: float, *, emergency: bool) -> None:
    """Destroy every process group; does nothing without one.

    Raises:
        TeardownTimeout: it did not return in time.
    """
    group, c10d = default_group(), loaded_c10d()
    if group is None or c10d is None:
        return
    rank, size = int(group.rank()), int(group.size())
    abort = emergency and "nccl" in str(c10d.get_backend_config(group))
    store = c10d._get_default_store() if emergency else None
    del group  # gloo closes its connections, and frees the others, when the last reference is gone
    device = _current_cuda_device()
    if store is not None and rank != 0:
        _with_store(lambda store: store.add(_key("left"), 1))

    def destroy() -> None:
        if device is not None:
            import torch

            torch.cuda.set_device(device)
        if abort:
            c10d._abort_process_group()
        if default_group() is not None:
            # spmdguard: ignore[SPG108] -- the main thread waits for it, and calls no collective any more
            c10d.destroy_process_group()

    try:
        call_bounded(destroy, timeout_s, "teardown")
    except DidNotReturn:
        raise TeardownTimeout(timeout_s=timeout_s, rank=rank) from None
    if store is not None and rank == 0 and not _agent_holds_store():
        _hold_store(store, size - 1)


def _agent_holds_store() -> bool:
    """Whether the launcher's process holds the store (torchrun); else rank 0's does."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true"


def _hold_store(store: Any, num_others: int) -> None:
    """Keep the store alive until the others have read there why they lost their partner, or a short time."""

    def wait() -> None:
        deadline_s = time.monotonic() + _HOLD_STORE_S
        while store.add(_key("left"), 0) < num_others and time.monotonic() < deadline_s:
            time.sleep(0.02)

    with contextlib.suppress(Exception):
        call_bounded(wait, _HOLD_STORE_S + 1.0, "last store access")


def _current_cuda_device() -> int | None:
    import torch

    cuda: Any = torch.cuda
    return int(cuda.current_device()) if cuda.is_available() and cuda.is_initialized() else None


def _key(what: str) -> str:
    return f"spmdguard/{what}/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"


def announce_failure(rank: int, text: str) -> None:
    """Leave this rank's failure in the store for ranks that lose their partner; the first one stays."""
    _with_store(lambda store: store.compare_set(_key("failure"), "", f"{rank} {text}"))


def find_announced_failure(own_rank: int) -> tuple[int, str] | None:
    """The first failure that another rank announced; None without one, or where the store is gone."""

    def look(store: Any) -> str:
        key = _key("failure")
        return str(store.get(key).decode(errors="replace")) if store.check([key]) else ""

    found = _with_store(look)
    if not found:
        return None
    rank, _, text = found.partition(" ")
    return None if int(rank) == own_rank else (int(rank), text)


def forget_failure() -> None:
    """Take the announced failure back, so that a later one is not told as its consequence."""
    _with_store(lambda store: store.delete_key(_key("failure")))


def _with_store(use: Any) -> Any:
    c10d = loaded_c10d()
    if c10d is None or default_group() is None:
        return None
    try:
        return call_bounded(lambda: use(c10d._get_default_store()), _STORE_TIMEOUT_S, "store access")
    except Exception:
        return None
