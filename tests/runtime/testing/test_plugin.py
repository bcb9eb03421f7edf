"""The pytest plugin: marked tests run on every rank, once for each seed; failures say how to repeat them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

pytest_plugins = ["pytester"]

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
HEADER = """
import pytest
import torch
import torch.distributed as dist
import spmdguard.testing
"""


@pytest.fixture
def run_tests(pytester: pytest.Pytester, request: pytest.FixtureRequest):
    """Run the text of a test module in this process with the plugin."""

    def run(text: str, *argv: str) -> pytest.RunResult:
        pytester.makepyfile(HEADER + text)
        known = request.config.pluginmanager.has_plugin("spmdguard")
        plugin = [] if known else ["-p", "spmdguard.testing.plugin"]
        return pytester.runpytest_inprocess(*plugin, "-p", "no:cacheprovider", "--strict-markers", *argv)

    return run


def test_the_example_passes(run_tests, pytester: pytest.Pytester) -> None:
    """The example of a user's own tests passes as it stands."""
    for name in ("ddp_guarded.py", "ddp_unguarded.py", "test_training_simulated.py"):
        pytester.path.joinpath(name).write_text(
            (EXAMPLES / name).read_text(encoding="utf-8"), encoding="utf-8"
        )
    run_tests("", "test_training_simulated.py").assert_outcomes(passed=4)


def test_marked_tests_run_on_every_rank_and_seed(run_tests, pytester: pytest.Pytester) -> None:
    """Fixtures and parameters are handed to every rank; the function runs ranks x seeds times."""
    result = run_tests(
        """
        seen = []

        @pytest.fixture
        def folder(tmp_path):
            return tmp_path

        @pytest.mark.parametrize("value", [1, 2])
        @pytest.mark.spmd(ranks=3, seeds=2)
        def test_ranks(value, folder):
            tensor = torch.full((1,), float(value))
            dist.all_reduce(tensor)
            assert tensor.item() == 3 * value
            (folder / str(dist.get_rank())).write_text("here")
            seen.append((value, dist.get_rank()))

        def test_how_often():
            assert sorted(seen) == sorted([(v, r) for v in (1, 2) for r in range(3)] * 2)
            assert not dist.is_initialized()
        """.replace("\n        ", "\n")
    )
    result.assert_outcomes(passed=3)


def test_failures_name_ranks_lines_and_seed(run_tests) -> None:
    """A mismatch fails the test with both lines and how to run that schedule alone."""
    result = run_tests(
        """
@pytest.mark.spmd(ranks=2, seeds=[5])
def test_hang():
    if dist.get_rank() == 0:
        dist.barrier()
    else:
        dist.all_reduce(torch.ones(1))
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*ranks began different collectives*",
            "*rank 0: barrier at test_failures_name_ranks_lines_and_seed.py:9 in test_hang*",
            "*rank 1: all_reduce(op=sum, shape=[[]1[]], dtype=float32) at *.py:11 in test_hang*",
            "*to run this schedule alone: @pytest.mark.spmd(..., seeds=[[]5[]])*",
        ]
    )


def test_skips_assertions_and_expected_failures_work(run_tests) -> None:
    """What pytest does for a test, it does for a test on ranks."""
    result = run_tests(
        """
@pytest.mark.spmd(ranks=2)
def test_skip():
    pytest.skip("not here")

@pytest.mark.spmd(ranks=2)
def test_assertion():
    assert dist.get_rank() == 0

@pytest.mark.xfail(raises=spmdguard.testing.CollectiveMismatch, strict=True)
@pytest.mark.spmd(ranks=2)
def test_expected():
    if dist.get_rank() == 0:
        dist.barrier()

class TestMethods:
    @pytest.mark.spmd(ranks=2, initialized=False)
    def test_method(self):
        dist.init_process_group("gloo")
        dist.destroy_process_group()
"""
    )
    result.assert_outcomes(passed=1, skipped=1, failed=1, xfailed=1)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("spmd(4)", "takes ranks, seeds, initialized, torch by name, got 4"),
        ("spmd(rank=4)", "takes ranks, seeds, initialized, torch by name, got rank"),
        ("spmd(seeds=0)", "needs at least one seed, got seeds=0"),
        ("spmd(ranks=0)", "ranks must be at least 1, got 0"),
    ],
)
def test_wrong_markers_are_told(run_tests, marker: str, message: str) -> None:
    """A marker that cannot be right fails the test with what it takes."""
    result = run_tests(f"@pytest.mark.{marker}\ndef test_wrong():\n    pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{message}*"])


def test_unmarked_tests_are_left_alone(run_tests) -> None:
    """Without the marker a test runs once, as always."""
    run_tests("def test_plain():\n    assert not dist.is_initialized()\n").assert_outcomes(passed=1)


def test_a_failure_shows_no_log_of_torch(run_tests) -> None:
    """What torch logs of a failed collective is not shown; what the test logs is."""
    result = run_tests(
        """
@pytest.mark.spmd(ranks=2)
def test_hangs():
    import logging
    logging.getLogger("mine").warning("about to part")
    if dist.get_rank() == 0:
        dist.barrier()
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*c10d*NullHandler*")
    result.stdout.fnmatch_lines(["*about to part*"])
