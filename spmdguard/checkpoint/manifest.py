"""The manifest: the last file written into a checkpoint, and how a reader knows that nothing is missing.

A folder with a manifest whose files all have the recorded sizes is complete. Files that were added later do
not matter. Cost: one ``stat`` a file; with ``checksum`` one pass over the bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from spmdguard.checkpoint.files import walk_files, write_whole

MANIFEST = "spmdguard_manifest.json"
_FORMAT = 1
_CHUNK_BYTES = 4 * 1024 * 1024


def write_manifest(folder: Path, step: int, checksum: bool) -> None:
    """Record every file of ``folder``; making it durable is left to ``sync_tree``, with all the others."""
    files: dict[str, dict[str, Any]] = {}
    for name, path in walk_files(folder):
        if path.is_symlink():
            files[name] = {"link": os.fspath(path.readlink())}
            continue
        files[name] = {"size": path.stat().st_size}
        if checksum:
            files[name]["sha256"] = hash_file(path)
    data = {"format": _FORMAT, "step": step, "files": files}
    write_whole(folder / MANIFEST, json.dumps(data, indent=1))


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def find_problem(folder: Path, step: int, checksum: bool = False) -> str | None:
    """Why ``folder`` is no complete checkpoint of ``step``; None where it is one."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"it has no {MANIFEST}, so it is incomplete or was not written by save_checkpoint"
    except (OSError, ValueError) as exc:
        return f"its {MANIFEST} cannot be read ({exc})"
    if not isinstance(data, dict) or data.get("format") != _FORMAT or not isinstance(data.get("files"), dict):
        return f"its {MANIFEST} is of another format"
    if data.get("step") != step:
        return f"its {MANIFEST} is of step {data.get('step')}"
    for name, recorded in data["files"].items():
        problem = _find_file_problem(folder / name, recorded, checksum)
        if problem:
            return f"{name} {problem}"
    return None


def _find_file_problem(path: Path, recorded: dict[str, Any], checksum: bool) -> str | None:
    try:
        found = path.lstat()
        if "link" in recorded:
            return None if stat.S_ISLNK(found.st_mode) else "is no link any more"
        if not stat.S_ISREG(found.st_mode):
            return "is no file"
        if found.st_size != recorded["size"]:
            return f"has {found.st_size} bytes instead of {recorded['size']}"
        if checksum and "sha256" in recorded and hash_file(path) != recorded["sha256"]:
            return "has other bytes than were written"
    except OSError as exc:
        return f"cannot be read ({exc.strerror})"
    return None
