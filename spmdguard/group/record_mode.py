"""The mode behind ``record``; importing this imports torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from spmdguard.group import guard


class SeeCollectives(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's base is untyped
    """Hands every operator on, and tells ``see`` of those that communicate."""

    def __init__(self, see: Callable[[str], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's base is untyped
        self._see = see

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = getattr(func, "_schema", None)
        if schema is not None:
            namespace, _, operator = schema.name.partition("::")
            if guard.is_collective(namespace, operator):
                self._see(operator.strip("_"))
        return func(*args, **(kwargs or {}))
