"""Constructs of the language: where ranks part in them, the linter says so.

Each case is a body of ``main``, which calls what its definitions hold, and parts the ranks; with the world size in
place of the rank it parts nobody.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint


def read_cases(text: str) -> dict[str, tuple[str, str]]:
    """Name -> (body of ``main``, definitions before it); the file says "=== name", definitions, "---", body."""
    cases = {}
    for part in text.split("=== ")[1:]:
        name, rest = part.split("\n", 1)
        definitions, body = f"\n{rest}".split("\n---\n", 1)
        cases[name] = (body.rstrip(), definitions.strip("\n") + "\n")
    return cases


CASES = read_cases(Path(__file__).with_name("language_cases.txt").read_text(encoding="utf-8"))
HEAD = """import os
import asyncio
import contextlib
import functools
import torch
import torch.distributed as dist

class StepError(Exception):
    pass

"""
MAIN = """
def main(cfg):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    world = dist.get_world_size()
"""


def parts(body: str, definitions: str) -> bool:
    """Whether the linter says that ranks part ways."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    source = f"{HEAD}{definitions}{MAIN}{lines}\nmain(1)\n"
    findings = lint((), Config(), stdin=StandardInput(source.encode(), "snippet.py")).findings
    return any(finding.code[3] in "12346" and finding.code != "SPG608" for finding in findings)


@pytest.mark.parametrize("name", CASES)
def test_ranks_part(name: str) -> None:
    """A collective that only some ranks reach is reported, whichever construct leads there."""
    assert parts(*CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_nobody_parts(name: str) -> None:
    """The same construct is silent when all ranks have the same number."""
    body, definitions = CASES[name]
    everywhere = definitions.replace("dist.get_rank()", "dist.get_world_size()")
    assert not parts(re.sub(r"\brank\b", "world", body), everywhere)
