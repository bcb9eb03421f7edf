"""Standings for tests: ranks of one world, made from short descriptions, and a strategy for any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from spmdguard.format import pack_ranks
from spmdguard.watch.standing import STATES, Call, GroupNumber, Place, Standing

WORLD = "0"


def place(line: int, function: str = "main", file: str = "train.py") -> Place:
    return Place(file, line, function)


def call(
    number: int, operation: str, line: int, *, done: bool = True, group: str = WORLD, **more: Any
) -> Call:
    return Call(group, number, operation, (place(line),), done, began_s=float(number), **more)


def waiting(rank: int, size: int, calls: list[Call], **more: Any) -> Standing:
    """A rank that waits in the last of its calls."""
    last = replace(calls[-1], done=False)
    return Standing(
        rank=rank,
        host="a",
        pid=100 + rank,
        state="waiting",
        places=last.places,
        operation=last.operation,
        since_s=5.0,
        groups=(GroupNumber(WORLD, "default_pg", pack_ranks(range(size)), last.number),),
        calls=(*calls[:-1], last),
        **more,
    )


def elsewhere(rank: int, size: int, calls: list[Call], line: int, **more: Any) -> Standing:
    """A rank that has finished its calls and is at a line outside communication."""
    standing = Standing(
        rank=rank,
        host="a",
        pid=100 + rank,
        state="running",
        places=(place(line),),
        since_s=5.0,
        groups=(GroupNumber(WORLD, "default_pg", pack_ranks(range(size)), len(calls)),),
        calls=tuple(calls),
    )
    return replace(standing, **more)


_texts = st.text(max_size=60)
_numbers = st.integers(min_value=0, max_value=10**9)
_reals = st.floats(min_value=0, max_value=1e9, allow_nan=False)
places = st.builds(Place, _texts, _numbers, _texts)
calls = st.builds(
    Call,
    group=st.sampled_from(["0", "1"]),
    number=st.integers(0, 9),
    operation=st.sampled_from(["all_reduce", "barrier", "broadcast"]),
    places=st.lists(places, max_size=3).map(tuple),
    done=st.booleans(),
    point_to_point=st.booleans(),
    began_s=_reals,
    sizes=_texts,
)
groups = st.builds(
    GroupNumber,
    name=st.sampled_from(["0", "1"]),
    label=_texts,
    members=st.lists(st.integers(0, 40), unique=True, max_size=8).map(sorted).map(pack_ranks),
    number=st.none() | st.integers(0, 9),
)
standings = st.builds(
    Standing,
    rank=st.integers(0, 40),
    host=_texts,
    pid=_numbers,
    local_rank=st.integers(0, 8),
    state=st.sampled_from(STATES),
    places=st.lists(places, max_size=3).map(tuple),
    operation=_texts,
    since_s=_reals,
    busy=st.booleans(),
    groups=st.lists(groups, max_size=2).map(tuple),
    calls=st.lists(calls, max_size=6).map(tuple),
    step=st.none() | _numbers,
    phases=st.lists(_texts, max_size=2).map(tuple),
    failure=_texts,
    victim=st.booleans(),
    exit_code=st.none() | st.integers(-64, 255),
    seen_s=_reals,
)
