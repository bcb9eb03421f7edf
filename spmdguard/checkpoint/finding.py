"""``latest_checkpoint``: the newest complete checkpoint, the same on every rank.

The main rank decides and the others wait until they see the same folder. A network file system caches
directory listings (NFS: up to 60 s), but checks a file's content whenever it is opened. So the last save also
leaves its name in a small file, and a listing that does not show that folder yet is asked again.
"""

from __future__ import annotations

import json
import logging
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from spmdguard.checkpoint import files
from spmdguard.checkpoint.manifest import find_problem
from spmdguard.checkpoint.names import Published, list_published, parse_published
from spmdguard.errors import OtherRanksFailed
from spmdguard.format import find_user_frame, format_exception_line, format_place
from spmdguard.group.world import world
from spmdguard.latch import latch
from spmdguard.meeting import check_may_meet, meet, share_failures

FIND = "latest_checkpoint"
POINTER = ".spmdguard-latest"
_POINTER_AGE_S = 300.0

logger = logging.getLogger("spmdguard")


def latest_checkpoint(
    directory: str | os.PathLike[str],
    *,
    group: Any = None,
    checksum: bool = False,
    wait_timeout: float | timedelta = 90.0,
) -> Path | None:
    """Find the newest complete checkpoint in ``directory``.

    Folders that are incomplete, damaged or not written by ``save_checkpoint`` are passed over, with a
    warning where they look like checkpoints. Call it after ``init_process_group``: before, every process
    looks for itself, and ranks may find different ones.

    SPMD:
        Collective: an exchange of texts and one all_reduce on ``group``.
        Called by: every rank of ``group``, in the same order.
        Result: rank-invariant; the main rank's answer, once every rank sees that folder.
        Raises on: every rank, where one rank cannot read the directory or does not see the folder in time.

    Args:
        directory: what ``save_checkpoint`` was given. The main rank's counts.
        group: the process group; None is the default group. Its first rank is the main one.
        checksum: read every file and compare it with the SHA-256 that ``save_checkpoint(checksum=True)``
            left.
        wait_timeout: seconds to wait for a folder that another host has renamed, where a file system shows
            that late.

    Returns:
        The checkpoint's folder, or None where there is none.

    Raises:
        OSError: this rank cannot read the directory, or does not see the folder in time.
        OtherRanksFailed: that happened on another rank.
    """
    wait_s = wait_timeout.total_seconds() if isinstance(wait_timeout, timedelta) else float(wait_timeout)
    if not wait_s >= 0:
        raise ValueError(f"wait_timeout must be a number of seconds of at least 0, got {wait_timeout!r}")
    check_may_meet(FIND, group)
    place = Path(os.path.abspath(directory))  # noqa: PTH100 - resolve() would follow links
    channel = world().channel(group)
    if channel is None:
        return find_latest(place, checksum, wait_s)
    own: Exception | None = None
    found: Path | None = None
    if channel.rank == channel.ranks[0]:
        try:
            found = find_latest(place, checksum, wait_s)
        except OSError as exc:
            own = exc
    latch().num_begun += 1
    answer = json.dumps(None if found is None else os.fspath(found))
    answer = meet(FIND, channel, lambda: channel.gather_texts(answer))[0]
    shared = json.loads(answer)
    if shared is not None and own is None and found is None:
        own = _wait_for(Path(shared), wait_s, channel.rank)
    failures = share_failures(FIND, "" if own is None else format_exception_line(own), group)
    if own is not None:
        raise own
    if failures:
        raise OtherRanksFailed(failures=failures, place=f"{FIND} at {format_place(find_user_frame())}")
    return None if shared is None else Path(shared)


def _wait_for(found: Path, wait_s: float, rank: int) -> Exception | None:
    """See the folder that the main rank found, or say why not."""
    published = parse_published(found.name)
    assert published is not None
    if files.wait_until(lambda: _is_complete(found, published), wait_s):
        return None
    return FileNotFoundError(
        f"rank {rank} does not see {found} as the main rank does: {find_problem(found, published.step)}; "
        "the directory must be on a file system that all ranks share"
    )


def _is_complete(found: Path, published: Published) -> bool:
    return files.look_for(found) and find_problem(found, published.step) is None


def find_latest(directory: Path, checksum: bool, wait_s: float) -> Path | None:
    """The newest complete checkpoint that this process sees."""
    announced = _read_pointer(directory)
    if announced is not None and not files.wait_until(
        lambda: files.look_for(directory / announced.name), wait_s
    ):
        logger.warning(
            "%s was saved a short time ago and is not there; an older one is used", directory / announced.name
        )
    for published in list_published(directory):
        folder = directory / published.name
        problem = find_problem(folder, published.step, checksum)
        if problem is None:
            return folder
        logger.warning("%s is passed over: %s", folder, problem)
    return None


def _read_pointer(directory: Path) -> Published | None:
    """The checkpoint that was saved last, where that was so recent that a listing may not show it yet."""
    try:
        path = directory / POINTER
        text = path.read_text(encoding="utf-8")
        if time.time() - path.stat().st_mtime > _POINTER_AGE_S:
            return None
    except (OSError, ValueError):
        return None
    return parse_published(text.strip())
