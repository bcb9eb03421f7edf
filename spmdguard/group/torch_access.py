"""torch.distributed without importing it: a process that never imported it has no process group."""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Sequence
from typing import Any


def loaded_c10d() -> Any | None:
    """``torch.distributed.distributed_c10d`` where the program has imported it and it is available."""
    return sys.modules.get("torch.distributed.distributed_c10d")


def default_group() -> Any | None:
    """The default process group; None before ``init_process_group`` and after it is destroyed."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    return None if c10d is None else c10d.GroupMember.WORLD


def lacks_torch(command: str) -> bool:
    """Whether torch is not installed; if so, says that this command of ``spmdguard`` needs it."""
    try:
        found = importlib.util.find_spec("torch") is not None
    except (ImportError, ValueError):  # a finder that forbids it, or something else under its name
        found = sys.modules.get("torch") is not None
    if not found:
        text = f"spmdguard {command}: error: needs torch: pip install 'spmdguard[torch]'"
        print(text, file=sys.stderr, flush=True)
    return not found


def count_by_torchrun(word: str) -> int:
    """How many processes torchrun starts on this host for ``gpu``, ``auto`` and the like.

    Raises:
        ValueError: it knows no such word, or there is no such device.
    """
    from torch.distributed.run import determine_local_world_size

    return int(determine_local_world_size(word))


def run_torchrun(arguments: Sequence[str]) -> int | None:
    """torchrun in this process; the exceptions of failed ranks leave as it raises them.

    Returns:
        The signal that ended it and its ranks; None where they ended by themselves.
    """
    try:
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.run import main
    except KeyboardInterrupt:
        return signal.SIGINT
    try:
        main(list(arguments))
    except SignalException as ended:
        return int(ended.sigval)
    except KeyboardInterrupt:  # torchrun handles signals from the start of the ranks on
        return signal.SIGINT
    return None


def describe_group(group: Any) -> str:
    """``"group 'dp' (ranks 0-3)"`` for a process group object or a group name."""
    from spmdguard.format import name_ranks

    c10d = loaded_c10d()
    name = str(getattr(group, "group_name", group))
    try:
        if isinstance(group, str) and c10d is not None:
            group = c10d._resolve_process_group(group)
        label = str(getattr(group, "group_desc", "") or name)
        ranks = c10d.get_process_group_ranks(group) if c10d is not None else []
    except Exception:
        return f"group {name!r}"
    if label == "undefined":
        label = name
    return f"group {label!r} ({name_ranks(ranks)})" if ranks else f"group {label!r}"
