"""How the watch gets to the other ranks: right after the handshake, else as soon as there is a process group.

Every rank takes the same way: where a handshake was held, it ended before any rank had a group.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass

from spmdguard.group.bounded import DidNotReturn, call_bounded
from spmdguard.group.link import Link, open_link
from spmdguard.group.torch_access import default_group
from spmdguard.group.world import TorchWorld, find_number
from spmdguard.launch.handshake import Launched, last_launch
from spmdguard.launch.late import late_comers
from spmdguard.watch.standing import Standing

LATE_S = 5.0
_FIND_S = 1.0


@dataclass(frozen=True)
class Meeting:
    """Where this rank meets the others.

    Attributes:
        link: the job's store.
        rank, local_rank, world_size: of this process.
        num_here: how many ranks this node has; None where no launcher says it.
        launched: the handshake, where one was held.
    """

    link: Link
    rank: int
    local_rank: int
    world_size: int
    num_here: int | None
    launched: Launched | None = None

    @property
    def one_node(self) -> bool:
        """Whether all ranks are known to be on this node."""
        return self.num_here is not None and self.num_here >= self.world_size

    def find_processes(self, ranks: Collection[int]) -> list[Standing]:
        """Host and process of ranks that the watch has never heard of, as they said in the handshake."""
        launched = self.launched
        if launched is None or not ranks:
            return []
        try:
            found = call_bounded(lambda: launched.find_processes(ranks, _FIND_S), _FIND_S, "find processes")
        except (DidNotReturn, RuntimeError, OSError):
            return []
        return [
            Standing(rank=each.rank or 0, host=each.host, pid=each.pid, state="missing") for each in found
        ]


class LateWatch:
    """Now and then looks, on a thread of its own, for processes that were refused; rank 0 does it for all."""

    def __init__(self, meeting: Meeting) -> None:
        self._launched = meeting.launched if meeting.rank == 0 else None
        self._looked_s = time.monotonic()

    def look(self) -> None:
        """Look, if it is time to."""
        now_s = time.monotonic()
        if self._launched is None or now_s - self._looked_s < LATE_S:
            return
        self._looked_s = now_s
        tell = late_comers(self._launched).tell
        threading.Thread(target=tell, name="spmdguard late", daemon=True).start()


def can_meet() -> bool:
    """Whether there is a way to the other ranks."""
    return default_group() is not None or last_launch() is not None


def find_meeting(world: TorchWorld) -> Meeting | None:
    """The way to the other ranks; None where there is none yet."""
    group = default_group()
    launched = last_launch()  # after the group: a handshake that was held is seen by whoever sees the group
    num_here = find_number(["LOCAL_WORLD_SIZE"], os.environ)
    if launched is not None and launched.store is not None:
        return Meeting(
            link=Link(None, "watch", launched.store.raw),
            rank=launched.identity.rank or 0,
            local_rank=world.local_rank(),
            world_size=launched.world_size,
            num_here=launched.identity.local_world_size or num_here,
            launched=launched,
        )
    link = None if group is None else open_link("watch")
    if link is None:
        return None
    return Meeting(link, world.rank(), world.local_rank(), world.world_size(), num_here)
