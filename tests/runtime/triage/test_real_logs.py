"""Logs of real failing scripts under torchrun: the defects of the corpus that fail on CPU, each read and labelled.

``logs/labels.json`` says of each what a reader finds: the kind of failure, the ranks that are to blame (empty where
the logs cannot tell), and the line. They were made with ``torchrun --tee 3``; paths are shortened.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from tests.runtime.triage.helpers import ranks_of, verdict_of

LOGS = Path(__file__).with_name("logs")
LABELS = json.loads((LOGS / "labels.json").read_text())
TELLS = ("failed", "killed")


@pytest.mark.parametrize("name", sorted(LABELS))
def test_a_real_log_is_read_as_a_person_reads_it(name: str, tmp_path: Path):
    """The kind, the ranks and the line are those of the label."""
    label = LABELS[name]
    verdict = verdict_of(tmp_path, {"job.log": (LOGS / f"{name}.log").read_bytes()})
    assert (label["kind"], tuple(label["ranks"])) == (verdict.kind, ranks_of(verdict))
    assert label["line"] == (verdict.place.line if verdict.place else None)


@pytest.mark.parametrize("name", sorted(LABELS))
def test_a_real_log_in_files_per_rank_says_the_same(name: str, tmp_path: Path):
    """Split by rank as ``--log-dir`` does, without any tag in the lines."""
    files: dict[str, list[str]] = {"launcher.log": []}
    for line in (LOGS / f"{name}.log").read_text().splitlines(keepends=True):
        found = re.match(r"\[default(\d)\]:(?:\[rank\d\]: )?(.*\n)", line)
        target = f"attempt_0/{found.group(1)}/stderr.log" if found else "launcher.log"
        files.setdefault(target, []).append(found.group(2) if found else line)
    verdict = verdict_of(tmp_path, {file: "".join(lines).encode() for file, lines in files.items()})
    assert (LABELS[name]["kind"], tuple(LABELS[name]["ranks"])) == (verdict.kind, ranks_of(verdict))


def test_a_victim_is_never_called_the_cause_in_a_shuffled_log(tmp_path: Path):
    """With the lines in random order, what is called a cause is the labelled error; 95 of 100 are still found."""
    found, causes = 0, [name for name, label in LABELS.items() if label["kind"] in TELLS]
    for name, label in LABELS.items():
        lines = (LOGS / f"{name}.log").read_text().splitlines(keepends=True)
        random.Random(name).shuffle(lines)
        verdict = verdict_of(tmp_path / name, {"job.log": "".join(lines).encode()})
        if verdict.kind in TELLS:
            assert label["kind"] in TELLS, (name, verdict.error)
        if (
            name in causes
            and label["error"] in verdict.error
            and set(ranks_of(verdict)) <= set(label["ranks"])
        ):
            found += 1
    assert found >= 0.95 * len(causes)
