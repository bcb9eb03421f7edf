"""What the linter says about the lines at which a run stands still.

The linter is asked as a process of its own, in bounded time; the runtime never imports it. A run that hangs
is evidence, so its weaker findings are shown too, but only those that relate to where a rank stands (`relating.py`).
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmdguard.format import escape_text, short_path
from spmdguard.watch.looking import kind_of_file
from spmdguard.watch.relating import ON_ITS_WAY, Relation, relate, resolve, without_shared
from spmdguard.watch.standing import Place

_MAX_FILES = 4
_MAX_PROGRAM_FILES = 30
_MAX_BYTES = 4_000_000
_ROW = re.compile(r"\(line (\d{1,7})\)")
_CERTAINTY = ("definite", "likely", "possible")
_SEVERITY = ("error", "warning", "info")


@dataclass(frozen=True)
class Hint:
    """A finding of the linter that relates to where a rank stands."""

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
    names_line: bool = True
    """Whether it names a line where a rank stands; else it is in the same function."""

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

    def find(self, stacks: Sequence[Sequence[Place]], timeout_s: float) -> list[Hint] | None:
        """Findings that relate to the stacks, the nearest first; None where the linter did not answer."""
        process = self._process
        if process is None:
            return None if self.files else []
        try:
            code = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.stop()
            return None
        self._output.seek(0)
        return read_hints(self._output.read(_MAX_BYTES + 1), stacks) if code in (0, 1) else None

    def covers(self, places: Iterable[Place]) -> bool:
        """Whether it was asked about every file of these places."""
        known = {resolve(file) for file in self.files}
        return all(resolve(file) in known for file in files_of(places))

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


def read_hints(output: bytes, stacks: Sequence[Sequence[Place]]) -> list[Hint]:
    """The findings among the linter's JSON that relate to the stacks, those that explain most first."""
    if len(output) > _MAX_BYTES:
        return []
    try:
        findings = json.loads(output)
    except ValueError:
        return []
    apart = without_shared(stacks)
    found = []
    for finding in findings if isinstance(findings, list) else []:
        try:
            hint, relation = _match(finding, apart)
            sureness = _CERTAINTY.index(hint.certainty), _SEVERITY.index(finding["severity"])
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
        if relation is not None:
            found.append((relation.order(sureness), hint))
    found.sort(key=lambda each: each[0])
    return [hint for _, hint in found]


def _match(finding: dict[str, Any], stacks: Sequence[Sequence[Place]]) -> tuple[Hint, Relation | None]:
    """The finding, and how near it is to where ranks stand."""
    file = resolve(str(finding["filename"]))
    line = int(finding["location"]["row"])
    last = int(finding["end_location"]["row"])
    steps = [(int(step["location"]["row"]), str(step["message"])) for step in finding.get("trail", [])]
    files = [resolve(str(step["filename"])) for step in finding.get("trail", [])]
    traces = finding.get("traces") or {}
    others = _rows_of(traces.get("others", []))
    diverging = _rows_of(traces.get("diverging", []))
    relation = relate(
        str(finding["code"]),
        [(file, row) for row in range(line, min(last, line + 40) + 1)],
        {*zip(files, (row for row, _ in steps), strict=True), *((file, row) for row in others | diverging)},
        stacks,
    )
    hint = Hint(
        file=escape_text(short_path(str(finding["filename"]))),
        line=line,
        code=escape_text(str(finding["code"]), 20),
        name=escape_text(str(finding["name"]), 60),
        certainty=str(finding["certainty"]),
        message=escape_text(str(finding["message"]).replace("\n", " "), 300),
        steps=tuple((row, escape_text(text.replace("\n", " "), 160)) for row, text in steps[:6]),
        help=escape_text(str(finding.get("help", "")).replace("\n", " "), 300),
        others=tuple(sorted(others - diverging)[:20]),
        names_line=relation is not None and relation.nearest <= ON_ITS_WAY,
    )
    return hint, relation


def _rows_of(calls: Iterable[object]) -> set[int]:
    """The lines that one column of a counter-example names."""
    return {int(row) for text in calls for row in _ROW.findall(str(text))}
