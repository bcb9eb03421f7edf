"""What is done to the file system: make durable, publish by renaming, take out of sight before deleting."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spmdguard.checkpoint.names import is_abandoned, new_trash_name
from spmdguard.clock import clock
from spmdguard.format import format_exception_line

logger = logging.getLogger("spmdguard")
FOREIGN_AGE_S = 6 * 3600.0
_NUM_SYNCING = 16


def walk_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file below ``folder`` with its relative path, in a fixed order; links are not followed."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(parent, name)
            yield path.relative_to(folder).as_posix(), path


def sync_tree(folder: Path) -> None:
    """Make every file and folder below ``folder`` durable, in any order: its name is not yet a checkpoint's.

    All at once: a file system commits them together, which takes about as long as for one.
    """
    paths: list[Path] = []
    for parent, _, names in os.walk(folder):
        paths.append(Path(parent))
        paths += [path for path in map(Path(parent).joinpath, names) if not path.is_symlink()]
    with ThreadPoolExecutor(min(_NUM_SYNCING, len(paths)), "spmdguard sync") as pool:
        for _ in pool.map(sync, paths):
            pass


def sync(path: Path) -> None:
    """``fsync`` one file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, text: str) -> None:
    """Replace a file's content at once: readers see the old text or the new one, never a part."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def publish(saving: Path, target: Path) -> None:
    """Rename, the one instant at which a checkpoint begins to exist.

    A network file system may repeat a request whose answer was lost; the repetition then finds nothing.
    """
    try:
        saving.rename(target)
    except FileNotFoundError:
        if saving.exists() or not target.exists():
            raise


def discard(folder: Path) -> None:
    """Take a folder out of sight at once, then delete it."""
    trash = folder.with_name(new_trash_name())
    folder.rename(trash)
    shutil.rmtree(trash)


def clean_abandoned(directory: Path, active: set[str]) -> None:
    """Delete what dead runs left behind; what cannot be deleted is logged and stays."""
    for folder in list(directory.iterdir()):
        try:
            if is_abandoned(folder, active, time.time(), FOREIGN_AGE_S):
                logger.info("deleting %s, which a run that has ended left behind", folder)
                shutil.rmtree(folder)
        except OSError as exc:
            logger.warning("cannot delete %s of a run that has ended: %s", folder, format_exception_line(exc))


def wait_until(seen: Callable[[], bool], timeout_s: float) -> bool:
    """Whether ``seen`` became true in time; asks often at first, then once a second."""
    watch = clock()
    deadline_s = watch.monotonic() + timeout_s
    pause_s = 0.01
    while not seen():
        if watch.monotonic() > deadline_s:
            return False
        watch.sleep(pause_s)
        pause_s = min(1.0, 1.5 * pause_s)
    return True


def look_for(path: Path) -> bool:
    """Whether a path is there; listing its folder first makes a network file system ask its server."""
    try:
        with os.scandir(path.parent) as entries:
            return any(entry.name == path.name for entry in entries)
    except OSError:
        return False
