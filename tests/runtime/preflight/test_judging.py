"""From measurements to names, without processes: ranks, hosts and links, and who meets whom."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmdguard.preflight.links.judging import judge
from spmdguard.preflight.links.pairing import MAX_ALL_PAIRS, make_rounds
from spmdguard.preflight.links.report import render_preflight


def measured(
    hosts: str, slow: set[tuple[int, int]] = frozenset(), wrong: set[tuple[int, int]] = frozenset()
) -> Any:
    """Results of one rank for each letter; pairs in ``slow`` are ten times slower."""
    size = len(hosts)
    results: list[dict[str, Any]] = []
    for rank, host in enumerate(hosts):
        pairs = []
        for a, b in sorted(
            (a, b) for round_ in make_rounds(range(size)) for a, b in round_ if rank in (a, b)
        ):
            factor = (10 if (a, b) in slow else 1) * (3 if hosts[a] != hosts[b] else 1)
            at = [rank] if (a, b) in wrong else []
            speed = {"latency_s": 1e-3 * factor, "bytes_s": 1e9 / factor, "num_bytes": 10**7}
            pairs.append({"pair": [a, b], "wrong_at": at, **speed})
        good = {"operation": "all_reduce", "bytes": 4, "seconds": 1e-4, "wrong": []}
        results.append(
            {
                "host": host,
                "process": {"compute_s": 0.01, "wrong": False, "memory": ""},
                "one host": [dict(good)],
                "all hosts": [dict(good)],
                "pairs": pairs,
                "clock_s": 0.0,
                "folder_s": 0.0,
            }
        )
    return results


def names(results: Any) -> list[tuple[str, str, str]]:
    return [(each.level, each.layer, each.who) for each in judge(results)]


def of_rank(rank: int, size: int) -> set[tuple[int, int]]:
    return {(min(rank, other), max(rank, other)) for other in range(size) if other != rank}


def test_nothing_is_wrong_with_equal_links() -> None:
    """Slower links across hosts are no fault: each kind is compared with itself."""
    assert names(measured("aaabbb")) == []
    assert render_preflight(measured("aaabbb"), []).endswith("verdict: nothing stands out\n")


@pytest.mark.parametrize("size", [3, 4, 7, 16])
def test_a_slow_rank_is_named_in_place_of_its_links(size: int) -> None:
    """All links of one rank are bad: the rank is named, once."""
    assert names(measured("a" * size, slow=of_rank(1, size))) == [("slow", "pairs", "rank 1 (host a)")]


def test_a_single_bad_link_is_named() -> None:
    """One bad link between two good ranks is named as a link."""
    link = "the link between rank 0 (host a) and rank 4 (host c)"
    assert names(measured("aabbcc", slow={(0, 4)})) == [("slow", "pairs", link)]


def test_a_bad_host_is_named_in_place_of_its_ranks() -> None:
    """All links that leave one of three hosts are bad: the host is named."""
    hosts = "aabbcc"
    slow = {(a, b) for a in range(6) for b in range(a + 1, 6) if (hosts[a] == "b") != (hosts[b] == "b")}
    assert names(measured(hosts, slow=slow)) == [("slow", "pairs", "host b")]


def test_noise_on_small_messages_is_no_fault() -> None:
    """A link that loses less than a few milliseconds is not called slow, whatever the ratio."""
    results = measured("aaaa", slow=of_rank(1, 4))
    for result in results:
        for entry in result["pairs"]:
            entry["latency_s"] /= 1000
            entry["num_bytes"] = 1000
    assert names(results) == []


def test_the_worst_rank_explains_first() -> None:
    """Where noise spoils one more pair, the rank that is much slower is named all the same."""
    results = measured("aaaa", slow=of_rank(1, 4))
    for result in results:
        for entry in result["pairs"]:
            entry["bytes_s"] /= 4 if entry["pair"] == [0, 3] else 1
    assert names(results)[0] == ("slow", "pairs", "rank 1 (host a)")


def test_wrong_values_fail() -> None:
    """A wrong value on a link is a failure of the link; of all links of a rank, of the rank."""
    assert names(measured("aaaa", wrong={(1, 2)}))[0][:2] == ("failed", "pairs")
    assert names(measured("aaaa", wrong=of_rank(2, 4))) == [("failed", "pairs", "rank 2 (host a)")]


def test_senders_of_wrong_values_are_named() -> None:
    """Where gathered parts are wrong, the rank that they came from is named, not those that saw it."""
    results = measured("aabb")
    for result in results:
        result["all hosts"][0]["wrong"] = [3]
    assert names(results) == [("failed", "all hosts", "rank 3 (host b)")]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 80))
def test_every_round_has_disjoint_pairs(size: int) -> None:
    """Nobody is in two pairs of a round; each pair meets once, and up to the limit every pair meets."""
    rounds = make_rounds(range(size))
    for pairs in rounds:
        members = [member for pair in pairs for member in pair]
        assert len(members) == len(set(members))
    met = [pair for pairs in rounds for pair in pairs]
    assert len(met) == len(set(met)) and all(a < b for a, b in met)
    if size <= MAX_ALL_PAIRS:
        assert len(met) == size * (size - 1) // 2
    else:
        assert {member for pair in met for member in pair} == set(range(size))
