"""Every scenario in every layout: the right rank, error and line; whole, mixed, shuffled and cut logs."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.runtime.triage.helpers import ranks_of, verdict_of
from tests.runtime.triage.layouts import LAYOUTS, Files, Layout, merge
from tests.runtime.triage.scenarios import SCENARIOS, Scenario

DAMAGES = ("shuffled", "without the beginning", "without the end", "without the middle")


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_the_first_failure_is_named_in_every_layout(layout: Layout, tmp_path: Path):
    """Kind, ranks, error and line are right for every scenario."""
    for number, scenario in enumerate(SCENARIOS):
        verdict = verdict_of(tmp_path / str(number), layout.write(scenario, merge(scenario, 1)))
        assert (scenario.name, scenario.kind) == (scenario.name, verdict.kind)
        assert scenario.error in verdict.error
        if layout.names_ranks:
            assert (scenario.name, scenario.ranks) == (scenario.name, ranks_of(verdict))
        if scenario.line is not None:
            assert (scenario.name, scenario.line) == (scenario.name, verdict.place and verdict.place.line)


@pytest.mark.parametrize(
    "layout", [one for one in LAYOUTS if one.names_ranks], ids=lambda layout: layout.name
)
def test_outputs_mixed_by_buffering_change_nothing(layout: Layout, tmp_path: Path):
    """Where lines carry their rank, the order between ranks does not matter."""
    for number, scenario in enumerate(SCENARIOS):
        rows = merge(scenario, 5, by_time=False)
        verdict = verdict_of(tmp_path / str(number), layout.write(scenario, rows))
        assert scenario.error in verdict.error
        assert (scenario.name, scenario.kind, scenario.ranks) == (
            scenario.name,
            verdict.kind,
            ranks_of(verdict),
        )


def test_damaged_logs_name_the_error_that_is_left_in_95_of_100(tmp_path: Path):
    """Lines in random order, or a third cut off: the error is still found, and a victim is never the cause."""
    judged, right, wrong = 0, 0, []
    for layout in LAYOUTS[1::3]:
        for scenario in SCENARIOS:
            for damage in DAMAGES:
                files = damaged(layout.write(scenario, merge(scenario, 2)), damage)
                verdict = verdict_of(tmp_path / f"{layout.name} {scenario.name} {damage}", files)
                acceptable = (
                    scenario.error,
                    "KeyError: 'lr_max'" if "chained" in scenario.name else scenario.error,
                )
                named = any(error in verdict.error for error in acceptable)
                if verdict.kind in ("failed", "killed"):
                    assert named, (layout.name, scenario.name, damage, verdict.error)
                if not _is_left(scenario, files):
                    continue
                judged += 1
                if named and (not layout.names_ranks or set(ranks_of(verdict)) <= set(scenario.ranks)):
                    right += 1
                else:
                    wrong.append((layout.name, scenario.name, damage, verdict.error))
    assert judged > 120
    assert right >= 0.95 * judged, wrong


def damaged(files: Files, damage: str) -> Files:
    """The files with their lines in random order, or with a part of each cut off."""
    result: Files = {}
    for name, data in files.items():
        text = gzip.decompress(data) if name.endswith(".gz") else data
        result[name.removesuffix(".gz")] = b"".join(damage_lines(text.splitlines(keepends=True), damage, 3))
    return result


def damage_lines(lines: list[bytes], damage: str, seed: int) -> Sequence[bytes]:
    """The lines in a random order, or without a part of them."""
    if damage == "shuffled":
        return random.Random(seed).sample(lines, len(lines))
    if damage == "without the beginning":
        return lines[len(lines) // 3 :]
    if damage == "without the end":
        return lines[: len(lines) * 2 // 3]
    return lines[: len(lines) // 4] + lines[len(lines) // 2 :]


def _is_left(scenario: Scenario, files: Files) -> bool:
    """Whether the damaged logs still hold the line that tells the cause."""
    text = b"\n".join(files.values()).decode()
    if scenario.kind == "failed":
        return scenario.error in text
    return scenario.kind == "killed" and ("(exitcode: -9) local_rank" in text or "task 3: Killed" in text)
