"""Files that no person would write: read to an end, in bounded work, and SPG904 says where that was cut short."""

from __future__ import annotations

from collections import Counter

import pytest
from spmdguard_lint import engine
from spmdguard_lint.config import Config
from spmdguard_lint.interpreter import machine as machine_room

HEAD = "import torch.distributed as dist\n"
HAZARD = "def hazard(x):\n    if dist.get_rank() == 0:\n        dist.barrier()\n"


def nested(depth: int, header: str, innermost: str = "dist.all_reduce(x)") -> str:
    """Compound statements inside one another, in a function of ``x``."""
    lines = ["    " * (level + 1) + header for level in range(depth)]
    return "\n".join(["def f(x):", *lines, "    " * (depth + 1) + innermost, ""])


def repeated(number: int, text: str, head: str = "def f(x):\n") -> str:
    """The text once for each number below ``number``; ``N`` and ``M`` stand for that and for some other one."""
    return head + "".join(
        text.replace("M", str((i * 7 + 1) % number)).replace("N", str(i)) for i in range(number)
    )


FILES = {
    "deep branches": nested(90, "if dist.get_rank() == x:"),
    "deep loops": nested(19, "for i in x:"),
    "deep whiles": nested(19, "while x.more():"),
    "deep withs": nested(19, "with x.open() as y:"),
    "deep lambdas": "f = " + "lambda: (" * 60 + "dist.barrier()" + ")" * 60 + "\n",
    "deep comprehensions": "def f(x):\n    return " + "[" * 15 + "x" + " for a in x]" * 15 + "\n",
    "10,000 branches": repeated(10_000, "    if x == N:\n        dist.all_reduce(x)\n"),
    "2,000 rank branches": repeated(2_000, "    if dist.get_rank() == N:\n        x = N\n"),
    "chain of elif": repeated(
        1_000, "    elif x == N:\n        dist.all_reduce(x)\n", "def f(x):\n    if x:\n        pass\n"
    ),
    "huge match": repeated(
        1_000, "        case N:\n            dist.all_reduce(x)\n", "def f(x):\n    match x:\n"
    ),
    "chain of and": "def f(x):\n    if "
    + " and ".join(f"x.a{i}()" for i in range(1_500))
    + ":\n        dist.all_reduce(x)\n",
    "functions that call one another": repeated(
        300, "def fN(x):\n    fM(x)\n    if x:\n        fM(x)\n    dist.all_reduce(x)\n", ""
    ),
    "calls that double": repeated(
        60, "def fN(x):\n    fM(x + 1)\n    fM(x * 2)\n    fM(x - 3)\n    dist.all_reduce(x)\n", ""
    ),
    "classes that call one another": repeated(
        150,
        "class CN:\n    def m(self):\n        self.x = CM()\n        self.x.m()\n        dist.all_reduce(self)\n",
        "",
    ),
    "table": "TABLE = {\n" + "".join(f"    'k{i}': [{i}, dist.get_rank()],\n" for i in range(5_000)) + "}\n",
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_unlikely_files_are_read_to_an_end(tree, monkeypatch, name):
    """The work for a root is bounded, nothing crashes, and the hazard beside it is still found."""
    most = 0
    step = machine_room.Machine.step

    def counted(machine: machine_room.Machine, count: int = 1) -> None:
        nonlocal most
        most = max(most, machine_room.OWN_BUDGET - machine.steps_left)
        step(machine, count)

    monkeypatch.setattr(machine_room.Machine, "step", counted)
    result = engine.lint([tree({"a.py": HEAD + FILES[name] + HAZARD})], Config())
    codes = Counter(finding.code for finding in result.findings)
    assert codes["SPG101"] >= 1
    assert codes["SPG903"] == 0
    assert most <= machine_room.OWN_BUDGET


def test_what_was_cut_short_is_said(tree, monkeypatch):
    """Where a function takes more steps than one may, SPG904 names it, and other functions are read as ever."""
    monkeypatch.setattr(machine_room, "OWN_BUDGET", 200)
    text = (
        HEAD
        + repeated(1, nested(6, "for i in x.items(x, i):", "x = x.a(i).b(x, i).c(i, dist.get_rank())"), "")
        + HAZARD
    )
    body = "".join(f"                            y{i} = y{i - 1}.a(x, i)\n" for i in range(1, 60))
    text = text.replace("x = x.a(i)", "y0 = x\n" + body + "                            x = y59.a(i)")
    result = engine.lint([tree({"a.py": text})], Config())
    cut = [finding for finding in result.findings if finding.code == "SPG904"]
    assert [finding.message.split("`")[1] for finding in cut] == ["f"]
    assert "takes more steps" in cut[0].message
    assert any(finding.code == "SPG101" for finding in result.findings)


def test_decorators_are_read_behind_a_function_that_was_cut_short(tree, monkeypatch):
    """What a project's own decorator does is followed with room of its own, not with what the last root has left."""
    monkeypatch.setattr(machine_room, "OWN_BUDGET", 200)
    wrapper = "def wrap(function):\n    marked = function\n    return marked\n"
    decorated = "@wrap\ndef first(x):\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
    body = "".join(f"                            y{i} = y{i - 1}.a(x, i)\n" for i in range(1, 60))
    last = nested(6, "for i in x.items(x, i):", "y0 = x\n" + body + " " * 28 + "dist.all_reduce(y59)")
    result = engine.lint([tree({"a.py": HEAD + wrapper + decorated + last})], Config())
    assert sorted(finding.code for finding in result.findings) == ["SPG101", "SPG904"]


def test_nothing_is_said_where_nothing_was_cut_short(tree):
    """An ordinary file has no SPG904."""
    result = engine.lint([tree({"a.py": HEAD + HAZARD})], Config())
    assert [finding.code for finding in result.findings] == ["SPG101"]
