"""The ranks this process belongs to: the interface, the real one over torch.distributed, and who we are.

``world()`` is per process; a simulated rank of ``spmdguard.testing`` puts its own ``World`` there.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from spmdguard.current import PerProcess
from spmdguard.group.torch_access import default_group

_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_LOCAL_RANK_VARIABLES = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")


class Pending(Protocol):
    """A begun agreement."""

    def wait(self) -> int:
        """The maximum over the ranks."""
        ...


class Channel(Protocol):
    """All ranks of one group, reached through CPU memory."""

    rank: int
    ranks: Sequence[int]

    def max_int32(self, value: int) -> int:
        """The maximum over the ranks."""
        ...

    def start_max_int32(self, value: int) -> Pending:
        """Begin ``max_int32`` and return at once."""
        ...

    def gather_texts(self, text: str) -> list[str]:
        """The texts of all ranks, in group order."""
        ...

    def barrier(self) -> None:
        """Return after every rank has come."""
        ...

    def find_arrived(self, operation: str) -> Sequence[int] | None:
        """After a failure: which ranks failed in the same operation; None where it cannot be known."""
        ...

    def describe(self) -> str:
        """The group for a message."""
        ...


class World(Protocol):
    """Who this process is among all ranks, and the way to reach the others."""

    def rank(self) -> int: ...

    def local_rank(self) -> int: ...

    def world_size(self) -> int: ...

    def group_id(self) -> Any:
        """Identity of the present default group; None without one."""
        ...

    def sequence_number(self) -> int | None:
        """How many collectives the default group has begun on this rank."""
        ...

    def channel(self, group: Any = None) -> Channel | None:
        """The channel of a group, made on first use (then a collective); None where there is one process."""
        ...

    def announce_failure(self, text: str) -> None:
        """Tell ranks that will lose their partner why; bounded, never raises."""
        ...

    def find_announced_failure(self) -> tuple[int, str] | None:
        """Rank and text of the first failure that another rank announced; bounded, never raises."""
        ...

    def forget_failure(self) -> None:
        """Take announced failures back after the group was rebuilt; bounded, never raises."""
        ...

    def destroy(self, timeout_s: float, *, emergency: bool) -> None:
        """End all process groups; ``TeardownTimeout`` where that takes longer."""
        ...


def find_number(names: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """The first of the named environment variables that holds a number."""
    for name in names:
        value = environment.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def _nothing() -> None:
    return


class TorchWorld:
    """torch.distributed where it is initialised, else the launcher's environment, else a single process."""

    def __init__(self) -> None:
        self._channels: Any = None
        self._seen: Callable[[], Any] = _nothing
        self._rank = 0

    def rank(self) -> int:
        group = default_group()
        if group is None:
            return find_number(_RANK_VARIABLES, os.environ) or 0
        if group is not self._seen():  # asking the group costs 1 us
            self._rank = int(group.rank())
            self._seen = weakref.ref(group)
        return self._rank

    def local_rank(self) -> int:
        local = find_number(_LOCAL_RANK_VARIABLES, os.environ)
        return self.rank() if local is None else local

    def world_size(self) -> int:
        group = default_group()
        return 1 if group is None else int(group.size())

    def group_id(self) -> Any:
        group = default_group()
        return None if group is None else weakref.ref(group)

    def sequence_number(self) -> int | None:
        group = default_group()
        try:
            return None if group is None else int(group._get_sequence_number_for_group())
        except Exception:
            return None

    def channel(self, group: Any = None) -> Channel | None:
        if group is None:
            group = default_group()
            if group is None:
                return None
        elif isinstance(group, int):
            raise ValueError(f"this rank (rank {self.rank()}) is no member of the group given, got {group!r}")
        channels = self._channels
        if channels is None:
            from spmdguard.group.channel import Channels

            channels = self._channels = Channels()
        found: Channel = channels.last if channels.last_group() is group else channels.find(group)
        return found

    def announce_failure(self, text: str) -> None:
        if default_group() is not None:
            from spmdguard.group.teardown import announce_failure

            announce_failure(self.rank(), text)

    def find_announced_failure(self) -> tuple[int, str] | None:
        if default_group() is None:
            return None
        from spmdguard.group.teardown import find_announced_failure

        return find_announced_failure(self.rank())

    def forget_failure(self) -> None:
        if default_group() is not None:
            from spmdguard.group.teardown import forget_failure

            forget_failure()

    def destroy(self, timeout_s: float, *, emergency: bool) -> None:
        if default_group() is not None:
            from spmdguard.group.teardown import destroy_groups

            destroy_groups(timeout_s, emergency=emergency)


world: PerProcess[World] = PerProcess(TorchWorld)
