"""What the linter says about the lines at which a run stands still.

The linter is asked as a process of its own, in bounded time; the runtime never imports it. A run that hangs
is evidence, so its weaker findings are shown too, but only those that name a line where a rank stands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmdguard.format import escape_text, short_path
from spmdguard.watch.standing import Place

_MAX_FILES = 4
_MAX_BYTES = 4_000_000
_CERTAINTY = ("definite", "likely", "possible")
_SEVERITY = ("error", "warning", "info")


@dataclass(frozen=True)
class Hint:
    """A finding of the linter on or through a line where a rank stands."""

    file: str
    line: int
    code: str
    name: str
    certainty: str
    message: str
    steps: tuple[tuple[int, str], ...]
    help: str

    def describe(self) -> str:
        """``"train.py:38 SPG101 collective-in-rank-branch (likely): ..."``."""
        return f"{self.file}:{self.line} {self.code} {self.name} ({self.certainty}): {self.message}"


class Linting:
    """The linter at work on the files of some places; started early, asked for when the report is made."""

    def __init__(self, files: Sequence[str]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.files = files
        if not files:
            return
        command = [sys.executable, "-m", "spmdguard", "lint", "--output-format", "json", "--quiet"]
        command += ["--isolated", "--preview", "--min-certainty", "possible", "--extend-select", "ALL"]
        try:
            self._process = subprocess.Popen(
                [*command, *files],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        except OSError:
            return

    def find(self, places: Iterable[Place], timeout_s: float) -> list[Hint] | None:
        """Findings that name a line of ``places``, the surest first; None where the linter did not answer."""
        process, self._process = self._process, None
        if process is None:
            return None if self.files else []
        try:
            out, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None
        return read_hints(out, places) if process.returncode in (0, 1) else None

    def stop(self) -> None:
        """End the process, where nobody will ask any more."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def files_of(places: Iterable[Place]) -> list[str]:
    """The source files to lint, the most important first."""
    found = dict.fromkeys(place.file for place in places)
    return [name for name in found if name.endswith(".py") and Path(name).is_file()][:_MAX_FILES]


def read_hints(output: bytes, places: Iterable[Place]) -> list[Hint]:
    """The findings among the linter's JSON that name a line of ``places``, those that match best first."""
    if len(output) > _MAX_BYTES:
        return []
    try:
        findings = json.loads(output)
    except ValueError:
        return []
    order = {(_name(place.file), place.line): index for index, place in reversed(list(enumerate(places)))}
    found = []
    for finding in findings if isinstance(findings, list) else []:
        try:
            hint, nearness = _match(finding, order)
        except (KeyError, TypeError, ValueError):
            continue
        if nearness is not None:
            severity = _SEVERITY.index(finding["severity"])
            found.append(((_CERTAINTY.index(hint.certainty), severity, nearness), hint))
    found.sort(key=lambda each: each[0])
    return [hint for _, hint in found]


def _match(
    finding: dict[str, Any], order: dict[tuple[str, int], int]
) -> tuple[Hint, tuple[bool, int] | None]:
    """The finding, and how near it is to where ranks stand; None where it names no such line."""
    file = _name(str(finding["filename"]))
    line = int(finding["location"]["row"])
    last = int(finding["end_location"]["row"])
    own = [order[file, row] for row in range(line, min(last, line + 40) + 1) if (file, row) in order]
    steps = [(int(step["location"]["row"]), str(step["message"])) for step in finding.get("trail", [])]
    files = [_name(str(step["filename"])) for step in finding.get("trail", [])]
    through = [order[name, row] for name, (row, _) in zip(files, steps, strict=True) if (name, row) in order]
    hint = Hint(
        file=escape_text(short_path(str(finding["filename"]))),
        line=line,
        code=escape_text(str(finding["code"]), 20),
        name=escape_text(str(finding["name"]), 60),
        certainty=str(finding["certainty"]),
        message=escape_text(str(finding["message"]).replace("\n", " "), 300),
        steps=tuple((row, escape_text(text.replace("\n", " "), 160)) for row, text in steps[:6]),
        help=escape_text(str(finding.get("help", "")).replace("\n", " "), 300),
    )
    if own:
        return hint, (False, min(own))
    return hint, ((True, min(through)) if through else None)


def _name(filename: str) -> str:
    try:
        return str(Path(filename).resolve())
    except OSError:
        return filename
