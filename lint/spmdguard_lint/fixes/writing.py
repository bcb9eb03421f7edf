"""Put fixed files in place of the old ones: whole or not at all, with their permissions, through links."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from ..source.reading import SourceFile


class CannotWrite(Exception):
    """A file that could not be replaced; it is as it was."""


def write_fixed(before: SourceFile, after: SourceFile) -> None:
    """Replace a file by its fixed text; raise ``CannotWrite`` where that cannot be done, or it has changed."""
    path = Path(os.path.realpath(before.path))
    try:
        if path.read_bytes() != before.content:
            raise CannotWrite(f"{before.filename}: it was changed while it was linted; it is left alone")
        mode = path.stat().st_mode
        if not mode & 0o222 or not os.access(path, os.W_OK):
            raise CannotWrite(f"{before.filename}: it is read-only")
        _replace(path, after.content)
    except OSError as error:
        raise CannotWrite(f"{before.filename}: {error.strerror or error}") from error


def _replace(path: Path, content: bytes) -> None:
    """By a new file in the same folder, which takes the old one's name in one step."""
    handle, made = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, made)
        with contextlib.suppress(PermissionError, AttributeError):  # another owner: the mode is what counts
            os.chown(made, path.stat().st_uid, path.stat().st_gid)
        Path(made).replace(path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
