"""Schedules: a seed decides everything, other seeds run ranks in other orders, one rank runs at a time."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

pytest.importorskip("torch")
import torch
import torch.distributed as dist

from spmdguard.testing import CollectiveMismatch, SimulatedWorld, fault_point


def order_of(seed: int, ranks: int = 4, **delay: object) -> list[tuple[int, int]]:
    """Which rank ran when, step by step."""
    seen: list[tuple[int, int]] = []

    def train() -> None:
        for step in range(5):
            seen.append((step, dist.get_rank()))
            dist.barrier()

    world = SimulatedWorld(ranks, seed)
    if delay:
        world.delay(**delay)  # type: ignore[arg-type]  # handed on
    world.run(train)
    return seen


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_a_seed_is_a_schedule(seed: int) -> None:
    """The same seed runs the ranks in the same order every time."""
    assert order_of(seed) == order_of(seed)


def test_seeds_give_different_schedules() -> None:
    """Ten seeds give at least nine different orders, and every order runs all ranks in every step."""
    orders = [order_of(seed) for seed in range(10)]
    assert len({tuple(order) for order in orders}) >= 9
    everything = [(step, rank) for step in range(5) for rank in range(4)]
    assert all(everything == sorted(order) for order in orders)


def test_a_mismatch_is_the_same_for_a_seed() -> None:
    """The text of the error, places included, is the same for the same seed."""

    def part_ways() -> None:
        for _ in range(dist.get_rank()):
            dist.all_reduce(torch.ones(1))
        dist.broadcast(torch.ones(1), 0)

    texts = []
    for _ in range(2):
        with pytest.raises(CollectiveMismatch) as caught:
            SimulatedWorld(4, seed=7).run(part_ways)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_exactly_one_rank_runs_at_a_time() -> None:
    """Two ranks never run Python code at once between their collectives."""
    running: list[int] = []
    overlaps: list[list[int]] = []
    lock = threading.Lock()

    def train() -> None:
        for _ in range(20):
            with lock:
                running.append(dist.get_rank())
                if len(running) > 1:
                    overlaps.append(list(running))
            sum(range(2000))
            with lock:
                running.remove(dist.get_rank())
            dist.barrier()

    SimulatedWorld(4).run(train)
    assert overlaps == []


def test_a_delayed_rank_comes_last() -> None:
    """A delay keeps a rank back until the others have run or can run no more."""
    seen: list[int] = []

    def work() -> None:
        fault_point("start")
        seen.append(dist.get_rank())

    for seed in range(5):
        seen.clear()
        world = SimulatedWorld(4, seed)
        world.delay(0, at="start", turns=100)
        world.run(work)
        assert seen[-1] == 0


def test_each_rank_has_its_own_torch_generator() -> None:
    """Seeding and drawing on one rank does not move the generator of another, nor the process's."""

    def draw() -> list[float]:
        torch.manual_seed(dist.get_rank())
        drawn = []
        for _ in range(3):
            drawn.append(torch.rand(1).item())
            dist.barrier()
        return drawn

    expected = []
    for rank in range(3):
        generator = torch.Generator().manual_seed(rank)
        expected.append([torch.rand(1, generator=generator).item() for _ in range(3)])
    before = torch.get_rng_state()
    assert expected == SimulatedWorld(3).run(draw)
    assert torch.equal(before, torch.get_rng_state())


def test_the_launcher_environment_is_per_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """RANK and its like are the rank's own, can be changed by it, and come back as they were."""
    monkeypatch.setenv("RANK", "17")
    monkeypatch.setenv("SPMDGUARD_SHARED", "shared")
    monkeypatch.delenv("LOCAL_RANK", raising=False)

    def look() -> tuple[str, ...]:
        os.environ["LOCAL_RANK"] = f"local {os.environ['RANK']}"
        dist.barrier()
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SPMDGUARD_SHARED")
        assert set(names) <= set(os.environ)
        os.environ["SPMDGUARD_LEFT"] = "left"
        os.environ["MASTER_PORT"] = "1"
        del os.environ["MASTER_ADDR"]
        assert "MASTER_ADDR" not in os.environ
        return tuple(os.environ[name] for name in names)

    assert SimulatedWorld(2).run(look) == [("0", "local 0", "2", "shared"), ("1", "local 1", "2", "shared")]
    assert (os.environ["RANK"], "LOCAL_RANK" in os.environ) == ("17", False)
    assert os.environ.pop("SPMDGUARD_LEFT") == "left"
    shell = subprocess.run(
        ["sh", "-c", "echo $RANK,$MASTER_PORT"], capture_output=True, text=True, timeout=10
    )
    assert shell.stdout == f"17,{os.environ.get('MASTER_PORT', '')}\n"
    assert type(os.environ._data) is dict  # type: ignore[attr-defined]


def test_many_ranks_and_calls_fit() -> None:
    """64 ranks make 50 collectives each, in the one order."""

    def count() -> float:
        total = torch.zeros(1)
        for _ in range(50):
            one = torch.ones(1)
            dist.all_reduce(one)
            total += one
        return total.item()

    assert SimulatedWorld(64).run(count) == [64 * 50.0] * 64
