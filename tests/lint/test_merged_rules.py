"""Codes of rules that were merged into others: understood wherever a code may stand, with a note where they went."""

from __future__ import annotations

import json

BAD = "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    dist.barrier(){comment}\n"
HANDLER = """\
import torch.distributed as dist


def run(trainer):
    try:
        trainer.fit()
        dist.all_reduce(trainer.total)
    finally:
        dist.barrier()
"""


def test_a_merged_code_selects_where_it_went(tree, in_process):
    """`--select SPG502` reports SPG101 and says why; the same by name, in the settings, and for SPG604."""
    root = tree({"a.py": BAD.format(comment=""), "b.py": HANDLER})
    run = ("lint", "--output-format", "json")
    for selector in ("SPG502", "spg502", "collective-save-on-main-only"):
        outcome = in_process(*run, "--select", selector, ".")
        assert [item["code"] for item in json.loads(outcome.out)] == ["SPG101"]
        note = "spmdguard: note: SPG502 (collective-save-on-main-only) is reported as SPG101 and SPG104\n"
        assert outcome.err == note
    outcome = in_process(*run, "--select", "SPG604", ".")
    assert [item["code"] for item in json.loads(outcome.out)] == ["SPG206"]
    (root / "pyproject.toml").write_text("[tool.spmdguard.lint]\nselect = ['SPG502']\n", encoding="utf-8")
    outcome = in_process(*run, ".")
    assert [item["code"] for item in json.loads(outcome.out)] == ["SPG101"]
    assert "SPG502" in outcome.err


def test_a_merged_code_is_ignored_where_it_went(tree, in_process):
    """`--ignore SPG502` leaves out SPG101 and SPG104."""
    tree({"a.py": BAD.format(comment="")})
    assert in_process("lint", "--ignore", "SPG502", "a.py").exit_code == 0


def test_a_merged_code_in_a_comment(tree, in_process):
    """`ignore[SPG502]` and `noqa: SPG604` silence what they went to; where nothing is silenced, SPG901 names them."""
    tree({
        "a.py": BAD.format(comment="  # spmdguard: ignore[SPG502]"),
        "b.py": HANDLER.replace("    dist.barrier()\n", "    dist.barrier()  # noqa: SPG604\n"),
        "c.py": "x = 1  # spmdguard: ignore[SPG502]\n",
    })  # fmt: skip
    found = json.loads(in_process("lint", ".", "--output-format", "json").out)
    assert [(item["filename"], item["code"]) for item in found] == [("c.py", "SPG901")]
    assert found[0]["message"] == "this comment silences no SPG502 (collective-save-on-main-only)"


def test_the_page_of_a_merged_code(in_process):
    """`spmdguard rule SPG604` says where the rule went and prints that page; `--all` lists where they went."""
    outcome = in_process("rule", "SPG604")
    assert outcome.out.startswith(
        "SPG604 (barrier-on-emergency-path) is reported as SPG206.\n\n# collective-in-"
    )
    assert (
        "SPG502 (collective-save-on-main-only) is reported as SPG101 and SPG104"
        in in_process("rule", "--all").out
    )


IO = """\
import torch.distributed as dist


def step(grad, path):
    dist.all_reduce(grad)
    with open(path, "a") as log:
        log.write("done")
    dist.barrier()
"""


def test_advice_is_counted_in_one_line(tree, in_process):
    """Where the project does not use spmdguard, SPG201 is one line that tells how many and how to see them."""
    tree({"a.py": IO, "b.py": IO})
    outcome = in_process("lint", ".")
    assert outcome.exit_code == 0
    assert outcome.out.splitlines() == [
        "Not shown, because it is advice: 2 SPG201 (undeferred-rank-local-operation); "
        "`--extend-select SPG201` shows it.",
        "No findings: 2 files checked.",
    ]
    assert in_process("lint", ".", "--extend-select", "SPG201").exit_code == 1
    for quiet in (("--ignore", "SPG201"), ("-q",), ("--select", "SPG1"), ("--output-format", "github")):
        assert "advice" not in in_process("lint", ".", *quiet).out


def test_fixes_are_counted_by_what_they_need(tree, in_process):
    """A report says how many findings may have a fix, and which options show it."""
    tree({"a.py": BAD.format(comment="")})
    line = "1 finding may have a fix: `--diff --unsafe-fixes` shows it."
    assert line in in_process("lint", "a.py").out.splitlines()
