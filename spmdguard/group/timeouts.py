"""The timeout of a living process group: long until the first step is done, short afterwards.

The first step compiles, fills caches and opens connections; a timeout that allows for it makes every later hang as
long. torch can change a group's timeout while it lives (``_set_pg_timeout``; gloo and NCCL on torch 2.13).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from spmdguard.current import PerProcess
from spmdguard.group.torch_access import default_group, loaded_c10d

__all__ = ["StepTimeout", "find_timeout_s", "set_timeout", "step_timeout"]

_DEFAULT = timedelta(minutes=30)


def set_timeout(timeout_s: float, group: Any = None) -> None:
    """Give a process group, or without one all of this process, another timeout for what begins from now on."""
    c10d = loaded_c10d()
    if c10d is None or default_group() is None:
        return
    groups = list(c10d._world.pg_map) if group is None else [group]
    for each in groups:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # backends without a timeout of their own
            c10d._set_pg_timeout(timedelta(seconds=timeout_s), each)


def find_timeout_s(group: Any) -> float:
    """The timeout of a group of CPU tensors as it is now; none is left for a group that is gone."""
    import torch

    if group is None:
        return 0.0
    backend = group._get_backend(torch.device("cpu"))
    backend = getattr(backend, "wrapped_pg", backend)  # under TORCH_DISTRIBUTED_DEBUG=DETAIL
    timeout: timedelta | None = getattr(getattr(backend, "options", None), "_timeout", None)
    return (_DEFAULT if timeout is None else timeout).total_seconds()


def _nothing() -> None:
    return


class StepTimeout:
    """The timeout to set when the first step is done."""

    def __init__(self) -> None:
        self.armed_s: float | None = None
        self._then: Callable[[], None] = _nothing

    def arm(self, timeout_s: float, then: Callable[[], None] = _nothing) -> None:
        """After the first step every group of this process gets ``timeout_s``, and ``then`` is called once."""
        self.armed_s = timeout_s
        self._then = then

    def step_done(self) -> None:
        """A step is done; only the first one matters."""
        if self.armed_s is not None:
            timeout_s, self.armed_s = self.armed_s, None
            set_timeout(timeout_s)
            self._then()


step_timeout: PerProcess[StepTimeout] = PerProcess(StepTimeout)
