"""Guarantee 4: a collective begun inside rank-local work does not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from .processes import Zygote

pytestmark = pytest.mark.processes
MECHANISMS = ("generic-key", "pre-dispatch-key", "mode")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_kind_of_collective_is_refused(zygote: Zygote, mechanism: str) -> None:
    """Every public collective, functional ones, sub-groups, threads: none starts; the ranks still meet."""
    ended = zygote.run(
        "guarding:every_kind", ranks=2, timeout_s=60, env={"SPMDGUARD_REGION_GUARD": mechanism}
    )
    assert ended.codes == [0, 0], ended.report()
    for each in ended.ranks:
        *kinds, last = each.out.splitlines()
        assert f"mechanism: {mechanism}" == last
        assert [line for line in kinds if ": refused " not in line or not line.endswith("began 0")] == []
        assert len(kinds) == 27


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrapped_models_and_checkpoints_are_refused(zygote: Zygote, tmp_path: Path, mechanism: str) -> None:
    """DDP forward and backward, FSDP2 forward and a DCP save inside rank-local work do not communicate."""
    ended = zygote.run(
        "guarding:models",
        ranks=2,
        timeout_s=60,
        env={"SPMDGUARD_REGION_GUARD": mechanism},
        folder=tmp_path,
    )
    assert ended.codes == [0, 0], ended.report()
    for each in ended.ranks:
        lines = each.out.splitlines()
        assert len(lines) == 4
        assert [line for line in lines if ": refused " not in line] == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_regions_do_not_leak(zygote: Zygote, mechanism: str) -> None:
    """Other tasks, consumers of rank-local generators, pools and the time after a region may communicate."""
    ended = zygote.run(
        "guarding:outside_regions", ranks=2, timeout_s=60, env={"SPMDGUARD_REGION_GUARD": mechanism}
    )
    assert ended.codes == [0, 0], ended.report()
    expected = [
        "pool opened in a region: ran None",
        "task beside a rank-local one: ran None",
        "consumer of a rank-local generator: ran None",
        "region that submits to an old pool: refused allreduce",
        "afterwards: ran None",
    ]
    assert [expected, expected] == [each.out.splitlines() for each in ended.ranks]


@pytest.mark.parametrize("mechanism", MECHANISMS[:2])
def test_tensor_work_in_regions_is_untouched(zygote: Zygote, mechanism: str) -> None:
    """Operators, higher-order operators, autograd, transforms, compile and export work in a region."""
    ended = zygote.run(
        "guarding:tensor_work", ranks=1, timeout_s=100, env={"SPMDGUARD_REGION_GUARD": mechanism}
    )
    assert ended.codes == [0], ended.report()
    lines = ended[0].out.splitlines()
    assert len(lines) == 9
    assert [line for line in lines if not line.endswith(": ran None")] == []


def test_the_fast_mechanism_is_chosen(zygote: Zygote) -> None:
    """On this torch the guard that costs nothing is chosen without being asked for."""
    ended = zygote.run("guarding:chosen_mechanism", ranks=1)
    assert ended[0].out == "generic-key\n", ended.report()


def test_an_unknown_mechanism_is_told(zygote: Zygote) -> None:
    """A wrong SPMDGUARD_REGION_GUARD is a ValueError that shows it and what there is."""
    ended = zygote.run("guarding:chosen_mechanism", ranks=1, env={"SPMDGUARD_REGION_GUARD": "magic"})
    expected = "must be one of generic-key, pre-dispatch-key, mode, off; got 'magic'"
    assert expected in ended[0].err, ended.report()


def test_the_error_of_a_started_thread_is_deferred(zygote: Zygote) -> None:
    """A thread started by rank-local work is part of it: its error is not merely printed."""
    ended = zygote.run("guarding:thread_fails", ranks=2)
    assert ended.codes == [0, 0], ended.report()
    assert [each.out.strip() for each in ended.ranks] == ["True ranks 0-1: deferred OSError: thread"] * 2
