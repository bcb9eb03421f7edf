"""What the linter says about the lines at which a run stands still.

The linter is asked as a process of its own, in bounded time; the runtime never imports it. A run that hangs
is evidence, so its weaker findings are shown too, but only those that name a line where a rank stands.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spmdguard.format import escape_text, short_path
from spmdguard.watch.looking import kind_of_file
from spmdguard.watch.standing import Place

_MAX_FILES = 4
_MAX_PROGRAM_FILES = 30
_MAX_BYTES = 4_000_000
_ROW = re.compile(r"\(line (\d{1,7})\)")
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
    others: tuple[int, ...] = ()
    """Lines of the calls to which the other ranks go on, where the finding is about an exit."""

    def describe(self) -> str:
        """``"train.py:38 SPG101 collective-in-rank-branch (likely): ..."``."""
        return f"{self.file}:{self.line} {self.code} {self.name} ({self.certainty}): {self.message}"


class Linting:
    """The linter at work in the background, on some files; asked for when the report is made."""

    def __init__(self, files: Sequence[str]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the process has ended
        self.files = files
        if not files:
            return
        command = [sys.executable, "-m", "spmdguard", "lint", "--output-format", "json", "--quiet"]
        command += ["--isolated", "--preview", "--min-certainty", "possible", "--extend-select", "ALL"]
        nice = shutil.which("nice")
        try:
            self._process = subprocess.Popen(
                [*([nice, "-n", "10"] if nice else []), *command, *files],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        except OSError:
            return

    def find(self, places: Sequence[Place], timeout_s: float) -> list[Hint] | None:
        """Findings that name a line of ``places``, the surest first; None where the linter did not answer."""
        process = self._process
        if process is None:
            return None if self.files else []
        try:
            code = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.stop()
            return None
        self._output.seek(0)
        return read_hints(self._output.read(_MAX_BYTES + 1), places) if code in (0, 1) else None

    def covers(self, places: Iterable[Place]) -> bool:
        """Whether it was asked about every file of these places."""
        known = {_name(file) for file in self.files}
        return all(_name(file) in known for file in files_of(places))

    def stop(self) -> None:
        """End the process, where nobody will ask any more."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()


def files_of_program() -> list[str]:
    """The files of the running program: the script, and its own modules beside and below it."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if main is None or not Path(main).is_file():
        return []
    folder = f"{Path(main).resolve().parent}{os.sep}"
    found = [str(main)]
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str) and name.startswith(folder) and kind_of_file(name) == "user":
            found.append(name)
    return [name for name in dict.fromkeys(found) if name.endswith(".py")][:_MAX_PROGRAM_FILES]


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
            sureness = _CERTAINTY.index(hint.certainty), _SEVERITY.index(finding["severity"])
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
        if nearness is not None:
            found.append(((sureness, nearness), hint))
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
    traces = finding.get("traces") or {}
    others = {int(row) for text in traces.get("others", []) for row in _ROW.findall(str(text))}
    diverging = {int(row) for text in traces.get("diverging", []) for row in _ROW.findall(str(text))}
    hint = replace(hint, others=tuple(sorted(others - diverging)[:20]))
    if own:
        return hint, (False, min(own))
    return hint, ((True, min(through)) if through else None)


def _name(filename: str) -> str:
    try:
        return str(Path(filename).resolve())
    except OSError:
        return filename
