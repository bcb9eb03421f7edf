"""Make the default process group over a store that is there already, and prove that it works."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, PrefixStore

from spmdguard.group.devices import default_device

__all__ = ["find_wrong_ranks", "start_group"]

_FACTOR = 1_000_003


def start_group(
    backend: str | None,
    store: Any,
    prefix: str,
    rank: int,
    world_size: int,
    timeout_s: float,
    **options: Any,
) -> None:
    """``init_process_group`` over ``store``; without one, alone or where a simulated world provides it.

    ``prefix`` is used for one group only: torch gives the keys of a second group the names of the first.
    """
    timeout = timedelta(seconds=timeout_s)
    place: dict[str, Any] = {}
    if store is not None:
        place = {"store": PrefixStore(prefix, store), "rank": rank, "world_size": world_size}
    elif world_size == 1:
        place = {"store": HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group(backend, timeout=timeout, **place, **options)


def find_wrong_ranks(local_rank: int) -> tuple[list[int], str]:
    """One gather of one number each on the default group: ranks whose number is wrong, and the device used."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = default_device(local_rank, str(dist.get_backend()))
    own = torch.tensor([rank * _FACTOR + world_size], dtype=torch.int64, device=device)
    gathered = [torch.zeros_like(own) for _ in range(world_size)]
    dist.all_gather(gathered, own)
    found = torch.cat(gathered).tolist()
    wrong = [each for each in range(world_size) if found[each] != each * _FACTOR + world_size]
    return wrong, str(device)
