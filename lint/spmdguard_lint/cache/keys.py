"""What a result depends on, as one key.

Terminology: the *key* of a run stands for everything that the analysis may read: each file's name, place and
bytes, or why it could not be read; which folders around them are packages; every setting; the linter itself
and the Python that runs it. Equal keys mean equal results; names that were looked up and not found are in it
too, because which files there are is.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from ..config import Config

_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Input:
    """One file of a run: the name in reports, the path, and its bytes or why there are none."""

    filename: str
    path: Path
    content: bytes | None
    problem: str = ""


def run_key(inputs: Sequence[Input], config: Config) -> str:
    """The key of a run over ``inputs`` under ``config``."""
    paths = [os.path.abspath(one.path) for one in inputs]
    texts: list[str] = []
    for one, path in zip(inputs, paths, strict=True):
        content = "-" if one.content is None else digest_of(one.content)
        texts += (one.filename, path, one.problem, content)
    packages = _packages({os.path.dirname(path) for path in paths})
    return key_of(*settings_of(config), *texts, "packages", *packages)


def digest_of(content: bytes) -> str:
    """What stands for the bytes of a file."""
    return hashlib.blake2b(content, digest_size=20).hexdigest()


def key_of(*parts: str) -> str:
    """One key for a sequence of texts."""
    digest = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.hexdigest()


def settings_of(config: Config) -> list[str]:
    """What a result depends on beside the files: the linter, the Python, every setting."""
    found = [linter_stamp(), sys.version, sys.platform]
    for item in fields(config):
        if item.name != "source":
            found += (item.name, repr(getattr(config, item.name)))
    return found


def _packages(folders: Iterable[str]) -> list[str]:
    """Those of the folders, and of all above them, that hold an ``__init__.py``."""
    every: set[str] = set()
    for folder in folders:
        while folder not in every:
            every.add(folder)
            folder = os.path.dirname(folder)
    return sorted(folder for folder in every if os.path.isfile(os.path.join(folder, "__init__.py")))


@lru_cache(maxsize=1)
def linter_stamp() -> str:
    """Changes with every change of the linter's own files, also in an installation that is edited in place."""
    digest = hashlib.blake2b(digest_size=20)
    for name, size, modified in sorted(_own_files(str(_PACKAGE))):
        digest.update(f"{name}:{size}:{modified}\n".encode("utf-8", "surrogateescape"))
    parser = importlib.util.find_spec("libcst")  # reads grammar newer than this Python's
    if parser is not None and parser.origin is not None:
        status = Path(parser.origin).stat()
        digest.update(f"{parser.origin}:{status.st_size}:{status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _own_files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _own_files(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
