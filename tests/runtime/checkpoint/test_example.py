"""The example of checkpoints does what its docstring says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..processes import Ranks, Zygote
from ..processes.zygote import ROOT

pytestmark = pytest.mark.processes
EXAMPLE = ROOT / "docs" / "examples" / "checkpoint_dcp.py"


def run_example(zygote: Zygote, output: Path, *arguments: str) -> Ranks:
    return zygote.run(
        "saving_models:run_example",
        ranks=2,
        timeout_s=90,
        script=str(EXAMPLE),
        arguments=["--output", str(output), *arguments],
    )


def test_the_example_resumes_and_keeps_the_last_complete_checkpoint(zygote: Zygote, tmp_path: Path) -> None:
    """The second run goes on from the first; a failed save stops both ranks and leaves the older one."""
    first = run_example(zygote, tmp_path, "--steps", "6")
    assert first.codes == [0, 0], first.report()
    for each in first.ranks:
        assert each.out.splitlines() == [
            f"rank {each.rank}: going on from step 0",
            f"rank {each.rank}: step 3 saved: step-00000003",
            f"rank {each.rank}: step 6 saved: step-00000006",
        ]
    second = run_example(zygote, tmp_path, "--steps", "12", "--fail-metadata-at", "9")
    assert [each.code for each in second.ranks] == [1, 0], second.report()
    for each in second.ranks:
        cause = "rank 0: deferred OSError: no space left on device"
        assert each.out.splitlines() == [
            f"rank {each.rank}: going on from step 6",
            f"rank {each.rank}: step 9 saved: None",
            f"rank {each.rank}: stopping after step 9: {cause}",
        ]
    assert "in write_metadata" in second[0].err
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".spmdguard-latest", "step-00000003", "step-00000006"]
