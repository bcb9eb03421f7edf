"""The oracle on scripts whose answer is known, and the grammar against the oracle."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import HealthCheck, given, settings

from tests.lint.generated.compare import compare, noisy_linter, silent_linter
from tests.lint.generated.minimise import minimise, stays
from tests.lint.generated.oracle import judge
from tests.lint.generated.programs import from_seed, programs

pytestmark = pytest.mark.once

HEAD = """
import contextlib, os, sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
"""


def verdict(body: str, *, end: str = "dist.destroy_process_group()") -> str:
    return judge(HEAD + textwrap.dedent(body) + end).verdict


MISMATCHES = {
    "one arm": "if rank == 0: dist.barrier()\n",
    "other order": "dist.barrier() if rank else dist.all_reduce(torch.zeros(1))\n",
    "only at four ranks": "if rank == 3: dist.barrier()\n",
    "only at six ranks": "if rank == 5: dist.barrier()\n",
    "only with an argument": "if len(sys.argv) > 1 and rank: dist.barrier()\n",
    "only in one mode": "if os.environ['MODE'] == 'full' and rank: dist.barrier()\n",
    "raises before others wait": "if rank == 1: raise ValueError('gone')\ndist.barrier()\n",
    "swallowed": """
        with contextlib.suppress(ValueError):
            if rank == 1:
                raise ValueError('gone')
            dist.barrier()
        """,
    "not all members": "group = dist.new_group([0, 1])\nif rank == 0: dist.barrier(group=group)\n",
    "group made by some": "if rank == 0: dist.new_group([0, 1])\n",
    "gathered on one rank": """
        rows = [None] * world if rank == 0 else None
        dist.gather_object(rank, rows, dst=0)
        if rows is not None:
            dist.barrier()
        """,
}

MATCHES = {
    "both arms": "dist.barrier() if rank == 0 else dist.barrier()\n",
    "always true": "if rank < world: dist.barrier()\n",
    "reduced flag": """
        flag = torch.tensor([1 if rank == 1 else 0])
        dist.all_reduce(flag)
        if flag.item() > 0:
            dist.barrier()
        """,
    "told by rank 0": """
        box = [7 if rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        if box[0] == 7:
            dist.barrier()
        """,
    "members only": "group = dist.new_group([0, 1])\nif rank < 2: dist.barrier(group=group)\n",
    "ignored outside the group": "group = dist.new_group([0, 1])\ndist.barrier(group=group)\n",
    "raised by all": "raise ValueError('gone')\n",
    "handle": """
        total = torch.tensor([rank])
        work = dist.all_reduce(total, async_op=True)
        work.wait()
        for _ in range(total.item()):
            dist.barrier()
        """,
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_mismatch(name: str) -> None:
    """A script in which some rank waits for ever is a mismatch."""
    assert verdict(MISMATCHES[name]) == "mismatch"


@pytest.mark.parametrize("name", MATCHES)
def test_match(name: str) -> None:
    """A script in which all collectives meet is a match."""
    assert verdict(MATCHES[name]) == "match"


def test_different_ends_without_waiting_are_grey() -> None:
    """A rank that raises or keeps its group, or another root, while nobody waits, is neither."""
    assert [
        verdict("dist.broadcast(torch.zeros(1), src=rank % 2)\n"),
        verdict("if rank == 0: raise ValueError('gone')\n"),
        verdict("", end="if rank == 0: dist.destroy_process_group()"),
    ] == ["grey"] * 3


def test_broken_program_is_invalid() -> None:
    """An error that no program raises on purpose, or an endless loop, is no verdict on the ranks."""
    assert [verdict("print(nothing_of_the_name)\n"), verdict("while True: dist.barrier()\n")] == [
        "invalid"
    ] * 2


def test_true_results_reach_every_rank() -> None:
    """Results are those of a real group: sum, maximum, gathered and scattered values."""
    body = """
        total = torch.tensor([rank + 1]); dist.all_reduce(total)
        top = torch.tensor([rank]); dist.all_reduce(top, op=dist.ReduceOp.MAX)
        seen = [None] * world; dist.all_gather_object(seen, rank * 2)
        own, parts = [None], [r + 5 for r in range(world)]
        dist.scatter_object_list(own, parts if rank == 0 else None, src=0)
        first = torch.tensor([rank + 9]); dist.broadcast(first, src=1)
        good = total.item() == world * (world + 1) // 2 and top.item() == world - 1
        good = good and seen == [r * 2 for r in range(world)] and own[0] == rank + 5 and first.item() == 10
        if not good:
            raise SystemError("wrong result")
        """
    assert verdict(body) == "match"


def test_outcome_shows_what_each_rank_does() -> None:
    """The text of an outcome names each rank's collectives and who waits in what."""
    text = judge(HEAD + "if rank == 0: dist.barrier()\n").text()
    assert text == (
        "mismatch: world size 2, MODE=fast, argv=('train.py',)\n"
        "  rank 0: init_process_group, barrier; waits in barrier\n"
        "  rank 1: init_process_group; ends"
    )


def test_same_seed_same_program() -> None:
    """A program is known by its seed and place alone."""
    assert from_seed(3, 14) == from_seed(3, 14) != from_seed(3, 15)


@pytest.mark.parametrize("full", [False, True])
def test_series_holds_valid_programs_of_both_kinds(full: bool) -> None:
    """Generated programs are valid, and a fair part of them has a mismatch."""
    verdicts = [judge(from_seed(5, i, full=full)).verdict for i in range(150)]
    assert "invalid" not in verdicts
    assert 0.2 < verdicts.count("mismatch") / len(verdicts) < 0.7


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_strategy_draws_valid_programs(source: str) -> None:
    """The hypothesis strategy draws from the same grammar."""
    assert judge(source).verdict != "invalid"


def test_silent_linter_is_shown_to_miss_and_noisy_one_to_alarm() -> None:
    """The comparison can fail both ways."""
    sources = [(i, from_seed(5, i)) for i in range(60)]
    silent, noisy = compare(sources, silent_linter), compare(sources, noisy_linter)
    assert silent.missed == silent.num_mismatches == noisy.num_mismatches > 10
    assert (silent.kinds["false alarm"], noisy.missed, noisy.false_share) == (0, 0, 1.0)


def test_minimise_keeps_the_property_and_drops_the_rest() -> None:
    """A missed program is cut down to the statements that make it a mismatch."""
    body = "share = rank * 2\nfor i in range(3):\n    if share > 0:\n        dist.barrier()\n    print(i)\n"
    small = minimise(HEAD + body, stays("missed", silent_linter))
    assert small.splitlines()[-2:] == ["if share > 0:", "    dist.barrier()"]
    assert "for" not in small and "print" not in small


def test_loops_of_generated_programs_end() -> None:
    """No loop counts up to a name that its own body changes: each program comes to a verdict."""
    assert [i for i in (14, 241) if judge(from_seed(11, i, full=True)).verdict == "invalid"] == []


def test_a_script_that_goes_round_for_ever_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop without a collective and without an end is given up, and is no program of the fragment."""
    monkeypatch.setattr("tests.lint.generated.oracle.MAX_SECONDS", 1)
    assert verdict("while rank == 0:\n    pass\n") == "invalid"
