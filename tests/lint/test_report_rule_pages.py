"""Rule pages: complete, on the terminal and in docs/rules, and true to the rule files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from spmdguard_lint.model import RuleInfo
from spmdguard_lint.report.rule_page import documents, write_documents
from spmdguard_lint.rules import registry

DOCS = Path(__file__).resolve().parents[2] / "docs" / "rules"
SECTIONS = [
    "What it does",
    "Why is this bad",
    "Example",
    "Use instead",
    "Known limits",
    "Fix safety",
    "References",
]


@pytest.mark.parametrize("code", list(registry.codes()))
def test_page_is_complete(code):
    """Every page has the seven sections in order, none empty, and a one-sentence summary."""
    info = registry.rule_for(code)
    assert info is not None
    assert re.findall(r"^## (.*)$", info.page, re.MULTILINE) == SECTIONS
    bodies = re.split(r"^## .*$", info.page, flags=re.MULTILINE)[1:]
    assert all(body.strip() for body in bodies)
    assert info.summary.endswith(".")
    assert "\n" not in info.summary


def test_docs_are_up_to_date():
    """docs/rules is what `spmdguard rule --write-docs docs/rules` writes, no more and no less."""
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert written == documents(registry.all_rules())


def test_writing_removes_pages_of_rules_that_are_gone(tmp_path):
    """Writing the pages replaces all of them, and leaves other files alone."""
    (tmp_path / "SPG000.md").write_text("old", encoding="utf-8")
    (tmp_path / "notes.md").write_text("mine", encoding="utf-8")
    write_documents(registry.all_rules(), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"notes.md", "index.md", *(f"{code}.md" for code in registry.codes())}


def test_page_on_a_terminal(monkeypatch, in_process):
    """With colour, the page is set for the terminal rather than printed as Markdown."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = in_process("rule", "SPG903").out
    assert "\x1b[" in out
    assert "## What it does" not in out
    assert "cannot-parse (SPG903)" in out


def test_index_links_every_page():
    """The index has a row for every rule, with a link to its page."""
    index = documents(registry.all_rules())["index.md"]
    assert re.findall(r"\[(SPG\d{3})\]\((SPG\d{3})\.md\)", index) == [
        (code, code) for code in registry.codes()
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "SPG1"},
        {"code": "XYZ101"},
        {"name": "Early_Exit"},
        {"page": "# other-name (SPG101)\n"},
    ],
    ids=str,
)
def test_a_rule_described_wrongly_is_refused(changes):
    """A wrong code, name or heading is an error when the rule is imported."""
    right = {
        "code": "SPG101",
        "name": "a-b",
        "severity": "error",
        "status": "stable",
        "page": "# a-b (SPG101)\n",
    }
    assert isinstance(registry.rule(**right), RuleInfo)
    with pytest.raises(ValueError, match="expected"):
        registry.rule(**{**right, **changes})


def test_rules_without_docstrings():
    """Under `python -OO`, where docstrings are gone, rules still load."""
    info = registry.rule(code="SPG101", name="a-b", severity="error", status="stable", page=None)
    assert info.summary == ""
