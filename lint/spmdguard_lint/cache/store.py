"""Results of earlier runs on disk: one JSON file per key, written whole or not at all.

A file holds a checksum and the result on two lines. What is damaged, cut off, or in any other form counts as
not there. Writing may fail (a full disk, a read-only checkout): the run goes on, and ``problem`` says why.
Two runs at once write the same text under the same name, each by one rename.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..model import Finding
from .encoding import decode, encode

FOLDER = ".spmdguard_cache"
MAX_ENTRIES = 200
_IGNORE = "# Made by spmdguard; may be deleted at any time.\n*\n"
_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55\n# See https://bford.info/cachedir/\n"


@dataclass(frozen=True)
class Stored:
    """What a run found, without the texts of its files."""

    findings: tuple[Finding, ...]
    num_files: int
    num_suppressed: int
    num_advice: Mapping[str, int] = field(default_factory=dict)


class Cache:
    """The results kept in one folder, which is made when the first is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem = ""

    def get(self, key: str) -> Stored | None:
        """The result kept under ``key``, if a whole one is there."""
        try:
            return _from_json(self.read(key))
        except ValueError:
            return None

    def put(self, key: str, result: Stored) -> None:
        """Keep a result; where that fails, ``problem`` says why."""
        self.write(key, _to_json(result))

    def read(self, key: str) -> Any:
        """The JSON value kept under ``key``; None where there is no whole one."""
        try:
            text = self._path(key).read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            return None
        check, _, payload = text.partition("\n")
        if check != _checksum(key, payload):
            return None
        try:
            return json.loads(payload)
        except (ValueError, RecursionError):
            return None

    def write(self, key: str, value: Any) -> None:
        """Keep a JSON value; where that fails, ``problem`` says why."""
        payload = json.dumps(value, separators=(",", ":"))
        try:
            self._prepare()
            _write_whole(self._path(key), f"{_checksum(key, payload)}\n{payload}")
            self._prune()
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror or error}"

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, text in ((".gitignore", _IGNORE), ("CACHEDIR.TAG", _SIGNATURE)):
            if not (self.folder / name).exists():
                _write_whole(self.folder / name, text)

    def _prune(self) -> None:
        """Delete the oldest results beyond ``MAX_ENTRIES``; another run may be at it as well."""
        paths = list(self.folder.glob("*.json"))
        if len(paths) <= MAX_ENTRIES:
            return
        aged: list[tuple[int, Path]] = []
        for path in paths:
            with contextlib.suppress(OSError):
                aged.append((path.stat().st_mtime_ns, path))
        for _, path in sorted(aged)[: len(paths) - MAX_ENTRIES]:
            with contextlib.suppress(OSError):
                path.unlink()


def _checksum(key: str, payload: str) -> str:
    return hashlib.blake2b(f"{key}\n{payload}".encode(), digest_size=20).hexdigest()


def _write_whole(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _to_json(result: Stored) -> dict[str, Any]:
    return {
        "findings": [encode(finding) for finding in result.findings],
        "files": result.num_files,
        "suppressed": result.num_suppressed,
        "advice": dict(result.num_advice),
    }


def _from_json(data: Any) -> Stored:
    try:
        numbers = (data["files"], data["suppressed"], *data["advice"].values())
        if not all(type(number) is int for number in numbers):
            raise ValueError("expected numbers")
        findings = tuple(decode(item) for item in data["findings"])
        return Stored(findings, data["files"], data["suppressed"], dict(data["advice"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a result: {error!r}") from error
