"""What the tests of triage share."""

from __future__ import annotations

from pathlib import Path

from spmdguard.triage.command import collect
from spmdguard.triage.patterns import own_patterns
from spmdguard.triage.verdict import Verdict, judge
from tests.runtime.triage.layouts import Files


def verdict_of(folder: Path, files: Files) -> Verdict:
    """Write the files, read them as the command does, and judge."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    evidence, _, unread = collect([str(folder)], own_patterns())
    assert unread == []
    return judge(evidence)


def ranks_of(verdict: Verdict) -> tuple[int, ...]:
    """The ranks that a verdict names first."""
    return tuple(sorted(who.rank for who in verdict.who if who.rank is not None))
