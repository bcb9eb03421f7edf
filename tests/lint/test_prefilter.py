"""Which bytes make a file worth reading."""

from __future__ import annotations

import pytest
from spmdguard_lint.facts.lookup import marker_tokens
from spmdguard_lint.source.prefilter import Prefilter

LICENCE = (
    b"# Unless required by applicable law or agreed to in writing, software\n"
    b"# distributed under the License is distributed on an 'AS IS' BASIS,\n"
)


def test_every_marker_is_found_wherever_it_stands() -> None:
    """The grouped search finds exactly what looking for each marker finds."""
    prefilter = Prefilter()
    for token in marker_tokens():
        for content in (token, b"x" * 1000 + token, token + b"\n" * 10, b"a\n" + token + b"\nb"):
            assert prefilter.matches(content), token


@pytest.mark.parametrize("content", [b"", b"x = 1\n", b"import os\nprint(os.getcwd())\n", LICENCE])
def test_plain_files_do_not_match(content: bytes) -> None:
    """Neither empty files nor licence headers are markers."""
    assert not Prefilter().matches(content)


def test_a_licence_does_not_hide_a_marker() -> None:
    """The word counts again outside the licence text."""
    assert Prefilter().matches(LICENCE + b"import torch.distributed as dist\n")
    assert Prefilter().matches(b"from torch import distributed\n")


def test_single_pieces_of_markers_do_not_match() -> None:
    """A piece shared by several markers is not one itself."""
    tokens = marker_tokens()
    for token in tokens:
        for piece in (token[1:], token[:-1]):
            if piece and not any(other in piece for other in tokens):
                assert not Prefilter().matches(b"~" + piece + b"~") or b"distributed" in piece, token


def test_own_names_match_by_their_last_part() -> None:
    """``company.comm.my_sync`` is looked for as ``my_sync``."""
    assert not Prefilter().matches(b"my_sync()\n")
    assert Prefilter(["company.comm.my_sync"]).matches(b"my_sync()\n")
    assert Prefilter(["company.comm.my_sync"]).collective_calls.search("x.my_sync (1)")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("dist.barrier()", True),
        ("torch.distributed.gather (x)", True),
        ("torch.gather(x)", False),
        ("all_reduce(x)", True),
        ("my_all_reduce(x)", False),
        ("functools.reduce(f, x)", False),
        ("accelerator.wait_for_everyone()", True),
        ("barrier = 1", False),
    ],
)
def test_calls_are_told_by_name(text: str, found: bool) -> None:
    """Ambiguous names need ``dist.`` before them."""
    assert found == (Prefilter().collective_calls.search(text) is not None)
