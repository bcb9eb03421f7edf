"""The slower region guard for a torch without the PreDispatch mechanism: a ``TorchDispatchMode``."""

from __future__ import annotations

import threading
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from spmdguard.group import guard


class _RefuseCollectives(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's base is untyped
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = getattr(func, "_schema", None)
        if schema is not None:
            namespace, _, operator = schema.name.partition("::")
            if guard.is_collective(namespace, operator):
                raise guard.refuse(operator.rstrip("_"), guard.find_group(args, kwargs or {}))
        return func(*args, **(kwargs or {}))


class _Thread(threading.local):
    mode: Any = None


_thread = _Thread()


def switch_on() -> bool:
    """Push the mode on this thread's stack."""
    make: Any = _RefuseCollectives
    _thread.mode = make()
    _thread.mode.__enter__()
    return True


def switch_off() -> None:
    """Pop the mode."""
    mode, _thread.mode = _thread.mode, None
    mode.__exit__(None, None, None)
