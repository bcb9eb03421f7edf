"""Score the linter on the corpus, in this process: what is found on bad files, what is said of good ones.

A bad file is found *on the line* when a reported line is one of ``bad_lines`` or ``also_acceptable_lines``;
in a *trail* when only a step of a report's trail is; *elsewhere* when something else is reported. A good file
raises a false alarm by a report of severity ``error``, by a report with a code its bad twin was found by, or,
where the case has no bad twin and no ``residual_hazard``, by any report. ``strict`` scoring (the variants)
takes every report on a good file for a false alarm, but for those of the launch family.

The cases *held out* were written by people who did not know the linter, to see what it finds of the kind; the first
time they were read it found 0.62 (first, training code), 0.70 (first, peer programs) and 0.40 (second) of them.

A bad or good *folder* is a project of several files; ``file`` names the one that the lines count in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = HERE / "cases"
VARIANTS = HERE / "variants"
HELD_OUT = HERE / "held_out"
STATE = HERE / "state.json"

FOUND = ("no", "elsewhere", "trail", "line")


@dataclass(frozen=True)
class Score:
    """What the linter says of one case; ``found`` is empty where there is no bad file."""

    found: str = ""
    codes: tuple[str, ...] = ()  # that found it
    false: tuple[str, ...] = ()  # code@line on the good file

    def as_json(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v}


@dataclass(frozen=True)
class Case:
    """A folder with ``case.json`` and a bad side, a good side, or both."""

    folder: Path
    facts: dict[str, Any] = field(hash=False)

    @property
    def name(self) -> str:
        return self.folder.relative_to(HERE).as_posix()

    def side(self, which: str) -> Path | None:
        for path in (self.folder / f"{which}.py", self.folder / which):
            if path.exists():
                return path
        return None


def cases(root: Path) -> Iterator[Case]:
    """The cases below ``root`` that a reading of the file alone can decide, in order."""
    for path in sorted(root.rglob("case.json")):
        facts = json.loads(path.read_text())
        if facts.get("static", True):
            yield Case(path.parent, facts)


def lint_path(path: Path) -> Sequence[Any]:
    """The findings on one file or project with the default selection."""
    from spmdguard_lint.config import Config
    from spmdguard_lint.engine import lint

    return lint([path], Config()).findings


def score(case: Case, *, strict: bool = False) -> Score:
    """Lint both sides of a case."""
    found: str = ""
    codes: tuple[str, ...] = ()
    if bad := case.side("bad"):
        found, codes = _score_bad(case, bad)
    false: list[str] = []
    if good := case.side("good"):
        alone = case.side("bad") is None and not case.facts.get("residual_hazard")
        for report in lint_path(good):
            counts = report.severity == "error" or report.code in codes or alone
            if counts or (strict and not report.code.startswith("SPG7")):
                false.append(f"{report.code}@{report.site.start.row}")
    return Score(found, codes, tuple(sorted(false)))


def _score_bad(case: Case, bad: Path) -> tuple[str, tuple[str, ...]]:
    want = {*case.facts.get("bad_lines", ()), *case.facts.get("also_acceptable_lines", ())}
    file = case.facts.get("file", bad.name)
    reports = lint_path(bad)

    def wanted(site: Any) -> bool:
        return Path(site.filename).name == file and site.start.row in want

    on_line = {r.code for r in reports if wanted(r.site)}
    if on_line:
        return "line", tuple(sorted(on_line))
    near = {r.code for r in reports if any(wanted(step.site) for step in r.trail)}
    if near:
        return "trail", tuple(sorted(near))
    return ("elsewhere" if reports else "no"), ()


def worse(now: Score, recorded: Score) -> list[str]:
    """What a case lost against its recorded state, in words; empty when nothing."""
    lost = []
    if now.found and FOUND.index(now.found) < FOUND.index(recorded.found or "no"):
        lost.append(f"was found: {recorded.found}, is now: {now.found}")
    if len(now.false) > len(recorded.false):
        lost.append(f"false alarms were {list(recorded.false)}, are now {list(now.false)}")
    return lost


def better(now: Score, recorded: Score) -> bool:
    """Whether a case gained against its recorded state and lost nothing."""
    gained = FOUND.index(now.found or "no") > FOUND.index(recorded.found or "no")
    return not worse(now, recorded) and (gained or len(now.false) < len(recorded.false))


def recorded_state(path: Path = STATE) -> dict[str, Score]:
    """The state of every case as it was last recorded."""
    if not path.exists():
        return {}
    raw = json.loads(path.read_text())
    return {
        name: Score(entry.get("found", ""), tuple(entry.get("codes", ())), tuple(entry.get("false", ())))
        for name, entry in raw.items()
    }


@dataclass(frozen=True)
class Summary:
    """Figures over some cases."""

    num_bad: int
    num_on_line: int
    num_in_trail: int
    num_false: int
    num_cases: int

    @property
    def recall(self) -> float:
        return self.num_on_line / self.num_bad if self.num_bad else 1.0

    def text(self) -> str:
        return (
            f"recall {self.recall:.3f} ({self.num_on_line}/{self.num_bad} on the line, "
            f"{self.num_in_trail} more in a trail), "
            f"false alarms in {self.num_false} of {self.num_cases} cases"
        )


def summary(scores: Sequence[Score]) -> Summary:
    bad = [s.found for s in scores if s.found]
    false = sum(bool(s.false) for s in scores)
    return Summary(len(bad), bad.count("line"), bad.count("trail"), false, len(scores))
