"""Let torch.distributed answer per simulated rank, and as before on every other thread.

Four names of ``torch.distributed.distributed_c10d`` are replaced while ranks are simulated, each by something
that looks at the calling thread first: the table of groups (``_world``), ``rendezvous``, and the two
functions that make groups. Everything else works through the groups.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d
from torch.distributed import distributed_c10d

from spmdguard.group import guard
from spmdguard.testing.matching import Call
from spmdguard.testing.meetings import DEFAULT_GROUP, Meetings
from spmdguard.testing.ranks import SimulatedRank, thread
from spmdguard.testing.sites import find_site
from spmdguard.testing.torch_group import SimulatedGroup
from spmdguard.testing.torch_operations import do_nothing
from spmdguard.testing.torch_store import SimulatedStore

c10d: Any = distributed_c10d
c_api: Any = _distributed_c10d


class _RankTables(c10d._World):  # type: ignore[misc]  # torch's own class, taken as Any
    """torch's tables of groups, of one simulated rank."""

    def __init__(self) -> None:
        super().__init__()
        self.own: dict[str, Any] = {}

    pg_map = property(lambda self: self.own.setdefault("map", {}))
    pg_names = property(lambda self: self.own.setdefault("names", {}))
    pg_group_ranks = property(lambda self: self.own.setdefault("ranks", {}))
    pg_backend_config = property(lambda self: self.own.setdefault("config", {}))
    tags_to_pg = property(lambda self: self.own.setdefault("tags", {}))
    pg_to_tag = property(lambda self: self.own.setdefault("tag", {}))
    group_count = property(
        lambda self: self.own.setdefault("count", 0), lambda self, value: self.own.update(count=value)
    )


class _TablesOfThread:
    """Stands in for ``_world``: the tables of the rank that asks, or of the process."""

    def __init__(self, real: Any) -> None:
        object.__setattr__(self, "_real", real)

    @property
    def default_pg(self) -> Any:
        """Asked for in every call, so it has a shorter way than ``__getattr__``."""
        rank = thread.rank
        return self._real.default_pg if rank is None else rank.torch_world._default_pg

    def __getattr__(self, name: str) -> Any:
        rank = thread.rank
        return getattr(self._real if rank is None else rank.torch_world, name)

    def __setattr__(self, name: str, value: Any) -> None:
        rank = thread.rank
        setattr(self._real if rank is None else rank.torch_world, name, value)


class TorchSimulation:
    """torch.distributed for the ranks of one run."""

    def __init__(self, meetings: Meetings) -> None:
        self._meetings = meetings
        self._store = SimulatedStore(meetings)
        self._quiet = False

    def start_rank(self, rank: SimulatedRank, *, initialized: bool) -> None:
        """Called on the rank's own thread before the user's function."""
        rank.torch_world = _RankTables()
        torch.autograd.set_multithreading_enabled(False)
        if initialized:
            self._quiet = True
            try:
                dist.init_process_group("gloo")
            finally:
                self._quiet = False

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """torch.distributed answers per rank inside the block."""
        if guard.switch_on():  # installs the region guard, which wraps some of the same names for good
            guard.switch_off()
        names = ("_world", "rendezvous", "_new_process_group_helper", "_new_group_with_tag")
        before = {name: getattr(c10d, name) for name in names}
        excepthook = sys.excepthook
        c10d._world = _TablesOfThread(before["_world"])
        c10d.rendezvous = self._make_rendezvous(before["rendezvous"])
        c10d._new_process_group_helper = self._make_helper(before["_new_process_group_helper"])
        c10d._new_group_with_tag = self._make_new_group(before["_new_group_with_tag"])
        c_api._set_thread_isolation_mode(True)
        try:
            yield
        finally:
            c_api._set_thread_isolation_mode(False)
            for name, value in before.items():
                setattr(c10d, name, value)
            sys.excepthook = excepthook

    def _make_rendezvous(self, real: Any) -> Any:
        def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Any:
            me = thread.rank
            if me is None:
                return real(url, rank, world_size, **kwargs)
            num_ranks = len(self._meetings.ranks)
            if rank not in (-1, me.number) or world_size not in (-1, num_ranks):
                raise ValueError(
                    f"init_process_group was given rank={rank}, world_size={world_size}; this is simulated "
                    f"rank {me.number} of {num_ranks}"
                )
            return iter([(self._store, me.number, num_ranks)])

        return rendezvous

    def _make_helper(self, real: Any) -> Any:
        def new_process_group_helper(*args: Any, **kwargs: Any) -> Any:
            me = thread.rank
            if me is None:
                return real(*args, **kwargs)
            return self._new_group(me, *args, **kwargs)

        return new_process_group_helper

    def _make_new_group(self, real: Any) -> Any:
        def new_group_with_tag(*args: Any, **kwargs: Any) -> Any:
            me = thread.rank
            default = c10d.GroupMember.WORLD
            if me is None or default is None or kwargs.get("use_local_synchronization"):
                return real(*args, **kwargs)
            ranks = kwargs.get("ranks", args[0] if args else None)
            shown = "all" if ranks is None else tuple(sorted(ranks))
            call = Call("new_group", me, find_site(), ("ranks",), (shown,))
            self._meetings.meet(default.simulated, call, do_nothing)
            return real(*args, **kwargs)

        return new_group_with_tag

    def _new_group(
        self,
        me: SimulatedRank,
        size: int,
        group_rank: int,
        ranks: list[int],
        backend: Any,
        store: Any,
        name: str,
        *,
        pg_tag: str | None = None,
        group_desc: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """What ``_new_process_group_helper`` does, for a simulated group."""
        if pg_tag not in (None, ""):
            existing = c10d._find_pg_by_ranks_and_tag(pg_tag, ranks)
            if existing:
                return existing, c10d._world.pg_map[existing][1]
        if not ranks:
            self._meet_at_init(me)
        elif me.number not in ranks:
            return c10d.GroupMember.NON_GROUP_MEMBER, None
        members = list(ranks) or list(range(len(self._meetings.ranks)))
        label = group_desc if group_desc not in (None, "undefined") else f"group {name!r}"
        shown = label if ranks else DEFAULT_GROUP
        key = (me.num_groups, name, tuple(members))
        group = SimulatedGroup(
            self._meetings,
            me,
            self._meetings.find_group(key, members, str(shown)),
            name,
            group_desc or "undefined",
            c10d.PrefixStore(f"{name}/", store),
        )
        self._register(group, name, pg_tag)
        return group, group.get_group_store()

    def _meet_at_init(self, me: SimulatedRank) -> None:
        me.num_groups += 1
        if self._quiet:
            return
        ranks = range(len(self._meetings.ranks))
        group = self._meetings.find_group(("init", me.num_groups), ranks, "launch")
        self._meetings.meet(group, Call("init_process_group", me, find_site()), do_nothing)

    def _register(self, group: SimulatedGroup, name: str, pg_tag: str | None) -> None:
        world = c10d._world
        world.pg_map[group] = (c10d.Backend("gloo"), group.get_group_store())
        world.pg_names[group] = name
        world.pg_backend_config[group] = "cpu:gloo"
        c_api._register_process_group(name, group)
        tag = f"ptd:{name}" if pg_tag in (None, "") else f"user:{pg_tag}"
        if pg_tag in (None, ""):
            world.tags_to_pg.setdefault("", []).append(group)
        world.tags_to_pg.setdefault(tag, []).append(group)
        world.pg_to_tag[group] = tag


@contextlib.contextmanager
def one_thread_per_rank() -> Iterator[None]:
    """Let operators of a rank compute on the rank's own thread, which is what torchrun sets for its processes too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def random_state_per_rank(meetings: Meetings) -> Iterator[None]:
    """Give each rank its own state of torch's CPU generator: the present one, which comes back at the end."""
    generator = torch.default_generator
    before = generator.get_state()

    def save(rank: SimulatedRank) -> None:
        rank.random_state = generator.get_state()

    def restore(rank: SimulatedRank) -> None:
        generator.set_state(rank.random_state)

    for rank in meetings.ranks:
        rank.random_state = before
    meetings.scheduler.save, meetings.scheduler.restore = save, restore
    try:
        yield
    finally:
        generator.set_state(before)
