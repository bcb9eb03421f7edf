"""The simulation beside the real thing: every operation gives what gloo gives."""

from __future__ import annotations

import json
import warnings

import pytest

pytest.importorskip("torch")
import torch.distributed as dist

from spmdguard.testing import SimulatedWorld

from ..processes import Zygote
from ..scenarios.simulating import SUITES

NUM_RANKS = 3


@pytest.fixture(scope="module")
def real(zygote: Zygote) -> list[dict[str, str]]:
    """What real ranks printed, by rank and suite."""
    ended = zygote.run("simulating:every_operation", ranks=NUM_RANKS, timeout_s=60.0)
    assert ended.hung == [], ended.report()
    found = [dict(line.split(" ", 1) for line in each.out.splitlines()) for each in ended.ranks]
    assert [set(SUITES)] * NUM_RANKS == [set(each) for each in found], ended.report()
    return found


@pytest.mark.processes
@pytest.mark.parametrize("name", SUITES)
def test_every_operation_gives_what_gloo_gives(real: list[dict[str, str]], name: str) -> None:
    """The results of each operation are those of real gloo ranks, on two schedules."""
    expected = [json.loads(each[name]) for each in real]
    for seed in (0, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            found = SimulatedWorld(NUM_RANKS, seed).run(
                lambda: SUITES[name](dist.get_rank(), dist.get_world_size())
            )
        assert expected == json.loads(json.dumps(found))
