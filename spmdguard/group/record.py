"""See every collective that this thread begins, wherever it comes from: a ``TorchDispatchMode``, and creators.

Costs about 25 times an operator's own time: for a debugging mode, not for training.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from spmdguard.group import guard

See = Callable[[str], None]


@contextlib.contextmanager
def seeing_collectives(see: See) -> Iterator[None]:
    """Call ``see`` with the operation's name before each collective of this thread; nothing without torch."""
    if "torch.distributed.distributed_c10d" not in sys.modules:
        yield
        return
    if guard.switch_on():  # installs the region guard, which wraps the functions that create groups
        guard.switch_off()
    from spmdguard.group.record_mode import SeeCollectives

    make: Any = SeeCollectives
    guard.on_create.append(see)
    try:
        with make(see):
            yield
    finally:
        guard.on_create.remove(see)
