"""Agreement and exchange among the ranks of one group, through CPU memory.

The group itself where it can move CPU tensors; otherwise a gloo side group of the same ranks, because
agreement on an accelerator forces a device synchronisation every step (Lightning#21487).
"""

from __future__ import annotations

import array
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from spmdguard.group.bounded import call_bounded
from spmdguard.group.same_host import SameHost, meet_on_host
from spmdguard.group.timeouts import find_timeout_s
from spmdguard.group.torch_access import describe_group, loaded_c10d
from spmdguard.group.world import Pending

_GATHER_GRACE_S = 2.0
_RECENT_S = 60.0
_SHORT_BYTES = 508
_SIZE_BYTES = 4


class Channels:
    """Channels by group, dropped with the group."""

    def __init__(self) -> None:
        self.last_group: Callable[[], Any] = object
        self.last: TorchChannel | None = None
        self._known: weakref.WeakKeyDictionary[Any, TorchChannel] = weakref.WeakKeyDictionary()

    def find(self, group: Any) -> TorchChannel:
        """The channel of ``group``; made on first use, which is a collective where a side group is needed."""
        channel = self._known.get(group)
        if channel is None:
            channel = self._known[group] = TorchChannel(group)
        self.last_group = weakref.ref(group)
        self.last = channel
        return channel


def moves_cpu_tensors(group: Any) -> bool:
    """Whether a group has a backend for CPU tensors."""
    try:
        group._get_backend(torch.device("cpu"))
    except RuntimeError:
        return False
    return True


class _Box:
    """One int32 on CPU memory, and the tensor that shows it: made once, because that takes longer than to use."""

    __slots__ = ("held", "tensors")

    def __init__(self) -> None:
        self.held = array.array("i", [0])
        self.tensors = [torch.frombuffer(self.held, dtype=torch.int32)]


class _Work:
    """A begun agreement; its box is free again once it has been waited for, and never before."""

    def __init__(self, work: Any, box: _Box, free: list[_Box]) -> None:
        self._work = work
        self._box = box
        self._free = free

    def wait(self) -> int:
        self._work.wait()
        agreed: int = self._box.held[0]
        self._free.append(self._box)
        return agreed


class TorchChannel:
    """``Channel`` over torch.distributed; holds the group weakly, so that destroying it frees it."""

    def __init__(self, group: Any) -> None:
        self.rank: int = dist.get_rank()
        self.ranks: list[int] = list(dist.get_process_group_ranks(group))
        self._described = describe_group(group)
        self._name = str(group.group_name)
        if not moves_cpu_tensors(group):
            # spmdguard: ignore[SPG202] -- the backend of a group is the same on every rank
            group = _new_side_group(group, self.ranks)
        self._group = weakref.ref(group)
        self._box = _Box()
        self._free: list[_Box] = []
        options: Any = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.MAX
        self._options = options
        self._num_failures = 0
        self._same_host: SameHost | None = None
        self._looked_for_host = False

    def group(self) -> Any:
        group = self._group()
        if group is None:
            # spmdguard: ignore[SPG601] -- a use after the group's end, which all ranks come to alike
            raise RuntimeError(f"{self._described} has been destroyed")
        return group

    def max_int32(self, value: int) -> int:
        """One element: gloo takes 1.2 times as long for two and 1.6 times for three (2 ranks, torch 2.13)."""
        box = self._box
        box.held[0] = value
        self.group().allreduce(box.tensors, self._options).wait()
        agreed: int = box.held[0]
        return agreed

    def start_max_int32(self, value: int) -> Pending:
        """Through shared memory where all ranks are on this host; the first one finds out, as a collective."""
        same_host = self._same_host
        if same_host is not None:
            return same_host.start(value)
        if not self._looked_for_host:
            self._same_host = self._meet_on_host()
            self._looked_for_host = True
            return self.start_max_int32(value)
        free = self._free
        box = free.pop() if free else _Box()
        box.held[0] = value
        return _Work(self.group().allreduce(box.tensors, self._options), box, free)

    def _meet_on_host(self) -> SameHost | None:
        group = self._group
        found = meet_on_host(
            self.ranks, self.rank, self.gather_texts, self.max_int32, lambda: find_timeout_s(group())
        )
        if found is not None:
            weakref.finalize(self.group(), found.leave).atexit = False
        return found

    def gather_texts(self, text: str) -> list[str]:
        """One all_gather of short texts, a second one where any is longer: a third of ``all_gather_object``."""
        told = text.encode("utf-8", "surrogatepass")
        rows = self._gather_rows(told, _SHORT_BYTES)
        longest = max(size for size, _ in rows)
        if longest > _SHORT_BYTES:
            rows = self._gather_rows(told, longest)
        return [held[:size].decode("utf-8", "surrogatepass") for size, held in rows]

    def _gather_rows(self, told: bytes, width: int) -> list[tuple[int, bytes]]:
        """The sizes of all ranks' texts, and what of each fits into ``width`` bytes."""
        row = len(told).to_bytes(_SIZE_BYTES, "little") + told[:width].ljust(width, b"\0")
        own = torch.frombuffer(bytearray(row), dtype=torch.uint8)
        held = bytearray(len(row) * len(self.ranks))
        rows = list(torch.frombuffer(held, dtype=torch.uint8).view(len(self.ranks), -1).unbind())
        dist.all_gather(rows, own, group=self.group())
        found = [bytes(held[at : at + len(row)]) for at in range(0, len(held), len(row))]
        return [(int.from_bytes(each[:_SIZE_BYTES], "little"), each[_SIZE_BYTES:]) for each in found]

    def barrier(self) -> None:
        self.group().barrier().wait()

    def describe(self) -> str:
        return self._described

    def find_arrived(self, operation: str) -> Sequence[int] | None:
        """Every rank that failed here says so in the store and looks, for a short time, who else did."""
        self._num_failures += 1
        prefix = f"spmdguard/arrived/{self._name}/{operation}/{self._num_failures}"
        c10d = loaded_c10d()
        try:
            assert c10d is not None
            store = c10d._get_default_store()
            return list(
                call_bounded(lambda: self._meet_in(store, prefix), 2 * _GATHER_GRACE_S, "store access")
            )
        except Exception:
            return None

    def _meet_in(self, store: Any, prefix: str) -> list[int]:
        """Set with the time: a store that outlives its groups may hold keys of an earlier failure."""
        store.set(f"{prefix}/{self.rank}", str(time.time()))
        deadline_s = time.monotonic() + _GATHER_GRACE_S
        while True:
            arrived = [rank for rank in self.ranks if _is_recent(store, f"{prefix}/{rank}")]
            if len(arrived) == len(self.ranks) or time.monotonic() > deadline_s:
                return arrived
            time.sleep(0.05)


def _is_recent(store: Any, key: str) -> bool:
    return bool(store.check([key])) and abs(time.time() - float(store.get(key))) < _RECENT_S


def _new_side_group(group: Any, ranks: list[int]) -> Any:
    timeout = getattr(group, "_timeout", None) or getattr(getattr(group, "options", None), "_timeout", None)
    whole = len(ranks) == dist.get_world_size()
    return dist.new_group(
        ranks,
        backend="gloo",
        timeout=timeout,
        use_local_synchronization=not whole,
        group_desc=f"spmdguard side group of {group.group_name}",
    )
