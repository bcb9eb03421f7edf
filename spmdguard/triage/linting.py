"""What the linter says of the files that a verdict names, where they are at hand: a bounded process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from spmdguard.format import short_path
from spmdguard.triage.events import is_library
from spmdguard.triage.tracebacks import Frame
from spmdguard.triage.verdict import Verdict

LIMIT_S = 30.0
MAX_FILES = 8
MAX_BYTES = 2_000_000


def lint_findings(verdict: Verdict, sources: Sequence[Path]) -> list[str]:
    """Findings in the named files, those on a named line first; empty where no source or no linter is at hand."""
    frames = [frame for frame in _frames(verdict) if not is_library(frame.file)]
    files = {frame.file: path for frame in frames if (path := find_source(frame.file, sources)) is not None}
    if not files:
        return []
    paths = list(dict.fromkeys(files.values()))[:MAX_FILES]
    lines = {(files[frame.file], frame.line) for frame in frames if frame.file in files}
    ranked = [(_distance(finding, lines), index, finding) for index, finding in enumerate(_lint(paths))]
    return [_say(finding) for _, _, finding in sorted(ranked, key=lambda item: item[:2])]


def find_source(name: str, sources: Sequence[Path]) -> Path | None:
    """The file that a log names, as named or below one of ``sources`` by the longest tail that exists there."""
    path = Path(name)
    if _is_source(path):
        return path
    parts = PurePosixPath(name.replace("\\", "/")).parts
    for folder in sources:
        for start in range(1 if parts[:1] == ("/",) else 0, len(parts)):
            tail = parts[start:]
            if ".." not in tail and _is_source(folder.joinpath(*tail)):
                return folder.joinpath(*tail)
    return None


def _is_source(path: Path) -> bool:
    try:
        return path.suffix == ".py" and path.is_file() and path.stat().st_size <= MAX_BYTES
    except (OSError, ValueError):
        return False


def _frames(verdict: Verdict) -> list[Frame]:
    frames = [verdict.place] if verdict.place else []
    frames += [stand.place for stand in verdict.stands if stand.place]
    return [*frames, *reversed(verdict.callers)]


def _lint(paths: Sequence[Path]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "spmdguard", "lint", "--output-format", "json", "--", *map(str, paths)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        found = json.loads(done.stdout or "[]") if done.returncode in (0, 1) else []
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return []
    return [finding for finding in found if not finding["code"].startswith("SPG9")]


def _distance(finding: dict[str, Any], lines: set[tuple[Path, int]]) -> int:
    """0 on a named line, 1 where the trail touches one, 2 elsewhere in the file."""
    named = {(str(path.resolve()), line) for path, line in lines}
    if (str(Path(finding["filename"]).resolve()), finding["location"]["row"]) in named:
        return 0
    trail = {
        (str(Path(step["filename"]).resolve()), step["location"]["row"])
        for step in finding.get("trail") or ()
    }
    return 1 if trail & named else 2


def _say(finding: dict[str, Any]) -> str:
    place = f"{short_path(finding['filename'])}:{finding['location']['row']}"
    return f"{finding['code']} {place}: {finding['message']}"
