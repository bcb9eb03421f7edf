"""One trial: a seed becomes a small project, the whole linter reads it, and must end with findings."""

from __future__ import annotations

import random
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

from spmdguard_lint.config import Config
from spmdguard_lint.engine import lint

from tests.lint.fuzzing.grow import grown
from tests.lint.fuzzing.mutate import damaged


@dataclass(frozen=True)
class Trial:
    """What became of one seed; ``crash`` is the traceback, empty when all went well."""

    seed: int
    codes: tuple[str, ...]
    crash: str

    @property
    def place(self) -> str:
        """Where it crashed: the innermost frame and the error, equal for crashes of one cause."""
        lines = self.crash.strip().splitlines()
        frames = [line.strip() for line in lines if line.strip().startswith("File ")]
        return f"{frames[-1] if frames else '?'}: {lines[-1][:120]}" if lines else ""


def project(seed: int) -> dict[str, str]:
    """The files of one seed: one to three modules that may import one another."""
    chooser = random.Random(seed)
    files = {}
    for number in range(1, chooser.choice((1, 1, 2, 3)) + 1):
        files[f"mod{number}.py"] = grown(chooser) if chooser.random() < 0.5 else damaged(chooser)
    return files


def run_trial(seed: int) -> Trial:
    """Lint the project of one seed with every rule on."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in project(seed).items():
            Path(folder, name).write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            result = lint([folder], Config(preview=True, min_certainty="possible", root=Path(folder)))
        except Exception:
            return Trial(seed, (), traceback.format_exc())
    codes = tuple(finding.code for finding in result.findings)
    if result.num_files != len(project(seed)):
        return Trial(seed, codes, f"linted {result.num_files} files of {len(project(seed))}")
    return Trial(seed, codes, "")
