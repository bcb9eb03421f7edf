"""What is said of calls that were not followed, because what may be followed from one function was used up."""

from __future__ import annotations

import pytest
from spmdguard_lint.interpreter import machine

from tests.lint.rules.marked import agree, reported

SPENT = "\n".join(f"    total = total + {n}" for n in range(12))
ARMS = f"""
import torch.distributed as dist

def work(x, total=0):
{SPENT}
    dist.all_reduce(x)
    return total

def train(x):
    if dist.get_rank() == 0:
        work(x)
        work(x)
        work(x)
    else:
        work(x)
        work(x)
        work(x)

def train_alone(x):
    if dist.get_rank() == 0:
        dist.barrier()
"""


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little may be followed from one function."""
    monkeypatch.setattr(machine, "FOLLOW_BUDGET", 20)
    monkeypatch.setattr(machine, "FOLLOW_LEAST", 20)


@pytest.mark.usefixtures("spent")
def test_arms_that_were_not_read_to_their_end_are_not_unequal() -> None:
    """Arms whose calls were cut at different places may be equal; an arm without calls is judged as ever."""
    assert reported(ARMS, "SPG101", "SPG103", "SPG104") == [
        (ARMS.splitlines().index("def train_alone(x):") + 3, "SPG101")
    ]


@pytest.mark.usefixtures("spent")
def test_a_name_that_tells_of_the_rank() -> None:
    """A property that was cut is still known by a name that means one thing; any other name tells nothing."""
    assert agree(
        f"""
        import torch.distributed as dist

        class State:
            @property
            def is_main_process(self):
                first = compute(1)
                return compute(first) == dist.get_rank()

            @property
            def is_ready(self):
                first = compute(1)
                return compute(first) == 1

        def compute(x, total=0):
{SPENT.replace("    ", "            ", 1).replace(chr(10) + "    ", chr(10) + "            ")}
            return total + dist.get_rank() - dist.get_rank()

        def meet():
            compute(1), compute(2), compute(3)
            if State().is_main_process:
                dist.barrier()  # SPG101

        def meet_again():
            compute(1), compute(2), compute(3)
            if State().is_ready:
                dist.barrier()
        """,
        "SPG101",
    )


POLLED = f"""
import os
import time
import torch.distributed as dist

def meet(x, total=0):
{SPENT}
    dist.barrier()
    return total

def prepare(folder, make):
    ready = folder + "/ready"
    BEFORE
    if dist.get_rank() == 0:
        make(folder)
        open(ready, "w").close()
    else:
        while not os.path.exists(ready):
            time.sleep(1)
    MEETING
    if dist.get_rank() == 0:
        os.remove(ready)
    dist.barrier()
"""


def test_a_barrier_behind_a_call_that_was_read_orders_looks_for_a_file() -> None:
    """The call leads to the barrier, and without it the file is taken away too early."""
    polled = POLLED.replace("BEFORE", "pass")
    assert reported(polled.replace("MEETING", "meet(1)"), "SPG503") == []
    without = polled.replace("MEETING", "pass")
    assert reported(without, "SPG503") == [(without[: without.index("os.remove")].count("\n") + 1, "SPG503")]


@pytest.mark.usefixtures("spent")
def test_a_call_that_was_cut_may_be_the_barrier() -> None:
    """Where a function was not read to its end, nothing is said of files that are taken away too early."""
    polled = POLLED.replace("BEFORE", "meet(1), meet(2), meet(3)")
    assert reported(polled.replace("MEETING", "meet(4)"), "SPG503") == []
