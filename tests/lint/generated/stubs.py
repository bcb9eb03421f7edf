"""Stand-ins for ``torch``, ``torch.distributed``, ``os``, ``sys`` and others, as one rank sees them.

They hold what generated scripts use, nothing more, and are handed to a script through its own ``__import__``.
Rank sources (unseeded numbers, clock, file system) are chosen so that neighbouring ranks disagree: an
alarm on such a branch is then never excused by luck.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from tests.lint.generated.world import Detail, Group, ProgramError, Rank


class Tensor:
    """A flat list of numbers with the few methods generated scripts call."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)

    def item(self) -> Any:
        return self.values[0]

    def tolist(self) -> list[Any]:
        return list(self.values)

    def clone(self) -> Tensor:
        return Tensor(self.values)

    def fill_(self, value: Any) -> Tensor:
        self.values = [value] * len(self.values)
        return self


class Work:
    """The handle of an asynchronous collective: its result arrives at ``wait``."""

    def __init__(self, tensor: Tensor, values: list[Any] | None) -> None:
        self.tensor, self.values = tensor, values

    def wait(self) -> bool:
        if self.values is not None:
            self.tensor.values = list(self.values)
        return True


class Distributed:
    """``torch.distributed`` of one rank."""

    class ReduceOp:
        SUM = "sum"
        MAX = "max"
        MIN = "min"

    GroupMember = SimpleNamespace(NON_GROUP_MEMBER=-100)

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def init_process_group(self, backend: str = "gloo", timeout: timedelta | None = None) -> None:
        self._rank.alive = True
        self._rank.collective("init_process_group", None, None)

    def destroy_process_group(self, group: Group | None = None) -> None:
        if group is None:
            self._rank.collective("destroy_process_group", None, None)
            self._rank.alive = False

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return self._rank.alive

    def get_rank(self, group: Any = None) -> int:
        if group is None:
            return self._rank.rank
        return -1 if group == -100 else group[1:].index(self._rank.rank)

    def get_world_size(self, group: Any = None) -> int:
        if group is None:
            return self._rank.world
        return -1 if group == -100 else len(group) - 1

    def new_group(self, ranks: Sequence[int] | None = None) -> Any:
        members = tuple(sorted(range(self._rank.world) if ranks is None else ranks))
        self._rank.num_groups += 1
        self._rank.collective(f"new_group{members}", None, None)
        return (self._rank.num_groups, *members) if self._rank.rank in members else -100

    def _call(self, op: str, group: Any, contribution: Any, detail: Detail = 0) -> tuple[bool, Any]:
        """(this rank takes part, result)."""
        if group == -100:
            return False, None
        return True, self._rank.collective(op, group, contribution, detail)

    def barrier(self, group: Any = None, async_op: bool = False) -> Work | None:
        self._call("barrier", group, None)
        return Work(Tensor([]), None) if async_op else None

    def _in_place(self, op: str, tensor: Tensor, group: Any, detail: Detail, async_op: bool) -> Work | None:
        member, values = self._call(op, group, tensor.tolist(), detail)
        work = Work(tensor, values if member else None)
        if async_op:
            return work
        work.wait()
        return None

    def all_reduce(
        self, tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Work | None:
        return self._in_place("all_reduce", tensor, group, op, async_op)

    def broadcast(
        self, tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False
    ) -> Work | None:
        return self._in_place("broadcast", tensor, group, src, async_op)

    def reduce(self, tensor: Tensor, dst: int = 0, group: Any = None) -> None:
        self._in_place("reduce", tensor, group, dst, False)

    def all_gather(self, out: list[Tensor], tensor: Tensor, group: Any = None) -> None:
        member, values = self._call("all_gather", group, tensor.tolist())
        if member:
            for place, part in enumerate(values):
                out[place].values = list(part)

    def all_gather_object(self, out: list[Any], item: Any, group: Any = None) -> None:
        member, values = self._call("all_gather_object", group, item)
        if member:
            out[:] = values

    def broadcast_object_list(self, box: list[Any], src: int = 0, group: Any = None) -> None:
        member, values = self._call("broadcast_object_list", group, list(box), src)
        if member:
            box[:] = values

    def gather_object(
        self, item: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None
    ) -> None:
        member, values = self._call("gather_object", group, item, dst)
        if member and object_gather_list is not None and values is not None:
            object_gather_list[:] = values

    def scatter_object_list(
        self, out: list[Any], parts: list[Any] | None = None, src: int = 0, group: Any = None
    ) -> None:
        member, value = self._call("scatter_object_list", group, None if parts is None else list(parts), src)
        if member:
            out[0] = value


def _run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise ProgramError("a generated coroutine never waits for anything real")


def _torch(rank: Rank, dist: Distributed) -> SimpleNamespace:
    def rand(*shape: int) -> Tensor:
        rank.num_draws += 1
        return Tensor([0.9 if (rank.rank + rank.num_draws) % 2 else 0.1])

    def zeros(size: int, dtype: Any = None) -> Tensor:
        return Tensor([0] * size)

    return SimpleNamespace(
        distributed=dist,
        tensor=lambda values, dtype=None: Tensor(values if isinstance(values, list) else [values]),
        zeros=zeros,
        rand=rand,
        int64="int64",
    )


def modules_for(rank: Rank) -> dict[str, Any]:
    """The modules that a generated script may import, as this rank sees them."""
    dist = Distributed(rank)
    environment = {"RANK": str(rank.rank), "WORLD_SIZE": str(rank.world), "MODE": rank.mode}
    return {
        "torch": _torch(rank, dist),
        "torch.distributed": dist,
        "os": SimpleNamespace(
            environ=environment,
            getenv=environment.get,
            path=SimpleNamespace(exists=lambda path: rank.rank == 0),
        ),
        "sys": SimpleNamespace(argv=list(rank.argv), exit=_exit),
        "time": SimpleNamespace(monotonic=lambda: 50.0 + 100.0 * rank.rank),
        "asyncio": SimpleNamespace(run=_run_coroutine),
        "contextlib": contextlib,
        "functools": functools,
        "datetime": SimpleNamespace(timedelta=timedelta),
    }


def _exit(code: int = 0) -> None:
    raise SystemExit(code)


_BUILTINS = {name: getattr(builtins, name) for name in dir(builtins)}


def builtins_for(rank: Rank) -> dict[str, Any]:
    """The builtins of a generated script: no output, imports answered from the stand-ins."""
    modules = modules_for(rank)

    def import_stub(name: str, _g: Any = None, _l: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        return modules[name] if fromlist else modules[name.split(".")[0]]

    return {**_BUILTINS, "__import__": import_stub, "print": _quiet}


def _quiet(*_args: object, **_options: object) -> None:
    """A script's output is of no interest."""
