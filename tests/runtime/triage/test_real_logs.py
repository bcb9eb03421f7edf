"""Logs of real failing scripts under torchrun: the defects of the corpus that fail on CPU, each read and labelled.

``logs/labels.json`` says of each what a reader finds: the kind of failure, the ranks that are to blame (empty where
the logs cannot tell), and the line. They were made with ``torchrun --tee 3``; paths are shortened.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.runtime.triage.helpers import ranks_of, verdict_of
from tests.runtime.triage.test_layouts import DAMAGES, damage_lines

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


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_victim_is_never_called_the_cause_in_a_damaged_log(damage: str, tmp_path: Path):
    """Lines in random order, three times, or a third cut off: no other error is called a cause than the labelled one.

    Where its line is left it is found in at least 95 of 100.
    """
    judged, wrong = 0, []
    for seed in (1, 2, 3) if damage == "shuffled" else (0,):
        for name, label in LABELS.items():
            lines = (LOGS / f"{name}.log").read_bytes().splitlines(keepends=True)
            kept = list(damage_lines(lines, damage, seed))
            verdict = verdict_of(tmp_path / f"{name}-{seed}", {"job.log": b"".join(kept)})
            if verdict.kind in TELLS:
                assert label["kind"] in TELLS, (name, verdict.error)
            if label["kind"] not in TELLS or not any(label["error"].encode() in line for line in kept):
                continue
            judged += 1
            if label["error"] not in verdict.error or not set(ranks_of(verdict)) <= set(label["ranks"]):
                wrong.append((name, seed, verdict.error))
    assert judged >= 9
    assert len(wrong) <= 0.05 * judged, wrong
