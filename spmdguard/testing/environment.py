"""``os.environ`` with each simulated rank's own launcher variables on top of the process's."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from spmdguard.testing.ranks import thread

_PER_WORLD = {
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29500",
    "GROUP_RANK": "0",
    "TORCHELASTIC_RESTART_COUNT": "0",
}


def launcher_variables(rank: int, num_ranks: int) -> dict[str, str]:
    """What torchrun sets for a rank of one host."""
    own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    sizes = {"WORLD_SIZE": str(num_ranks), "LOCAL_WORLD_SIZE": str(num_ranks)}
    return {**_PER_WORLD, **own, **sizes}


class _Layered(dict[Any, Any]):
    """The process's variables; a simulated rank's thread sees and changes its launcher variables apart."""

    own: dict[int, dict[Any, Any]]

    def _layer(self, key: Any) -> dict[Any, Any] | None:
        rank = thread.rank
        layer = None if rank is None else self.own.get(rank.number)
        return layer if layer is not None and key in layer else None

    def __getitem__(self, key: Any) -> Any:
        layer = self._layer(key)
        return super().__getitem__(key) if layer is None else layer[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        layer = self._layer(key)
        if layer is None:
            super().__setitem__(key, value)
        else:
            layer[key] = value

    def __delitem__(self, key: Any) -> None:
        layer = self._layer(key)
        if layer is None:
            super().__delitem__(key)
        else:
            del layer[key]

    def __contains__(self, key: Any) -> bool:
        return self._layer(key) is not None or super().__contains__(key)

    def __iter__(self) -> Iterator[Any]:
        rank = thread.rank
        layer = {} if rank is None else self.own.get(rank.number, {})
        return iter({**dict.fromkeys(super().__iter__()), **layer})


@contextlib.contextmanager
def per_rank_environment(num_ranks: int) -> Iterator[None]:
    """Let ``os.environ`` answer per simulated rank inside the block; the process's own afterwards."""
    environment: Any = os.environ
    before = environment._data
    layered = _Layered(before)
    layered.own = {
        rank: {
            environment.encodekey(name): environment.encodevalue(value)
            for name, value in launcher_variables(rank, num_ranks).items()
        }
        for rank in range(num_ranks)
    }
    environment._data = layered
    try:
        yield
    finally:
        before.clear()
        dict.update(before, dict.items(layered))
        environment._data = before
        _repair_c_environment(before)


def _repair_c_environment(variables: dict[Any, Any]) -> None:
    """A rank that set a launcher variable of its own set it in C too, which child processes inherit."""
    environment: Any = os.environ
    for name in launcher_variables(0, 1):
        value = variables.get(environment.encodekey(name))
        if value is None:
            os.unsetenv(name)
        else:
            os.putenv(name, environment.decodevalue(value))
