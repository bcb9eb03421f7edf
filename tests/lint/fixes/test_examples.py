"""Each fix makes exactly what its example says, alone and through the command."""

from __future__ import annotations

import pytest
from spmdguard_lint.fixes.edits import apply_edits
from spmdguard_lint.fixes.planning import with_fixes
from spmdguard_lint.fixes.registry import fixable_codes
from spmdguard_lint.rules import registry

from tests.lint.fixes.example import Example
from tests.lint.fixes.examples import EXAMPLES
from tests.lint.fixes.walking import Subject

IDS = [f"{example.code}-{number}" for number, example in enumerate(EXAMPLES)]


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_fix_makes_what_the_example_says(example: Example) -> None:
    """The edits of the finding's fix turn the text before into the text after, with the right applicability."""
    result = Subject("example", text=example.before).lint()
    fixes = [f.fix for f in with_fixes(result.findings, result.sources) if f.code == example.code]
    assert len(fixes) == 1, [(f.code, f.message) for f in result.findings]
    assert fixes[0] is not None
    assert apply_edits(example.before, fixes[0].edits) == example.after
    assert fixes[0].applicability == example.applicability


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_the_loop_keeps_the_fix(example: Example) -> None:
    """Fixing to the end takes the finding away; an unsafe fix only where unsafe fixes are asked for."""
    subject = Subject("example", text=example.before)
    safe, unsafe = subject.fixed(unsafe=False), subject.fixed(unsafe=True)
    assert example.code not in [f.code for f in unsafe.findings]
    left = [f.code for f in safe.findings]
    assert (example.code in left) == (example.applicability == "unsafe")


def test_every_fix_has_an_example() -> None:
    """There is an example for each rule with a fix."""
    assert {example.code for example in EXAMPLES} == fixable_codes()


def test_every_fix_is_declared_and_every_declaration_has_a_fix() -> None:
    """A rule that declares a fix has a file for it, and the other way round; pages say what it is worth."""
    declared = {info.code: info for info in registry.all_rules() if info.fix is not None}
    assert sorted(declared) == sorted(fixable_codes())
    for info in registry.all_rules():
        _, _, section = info.page.partition("## Fix safety\n")
        assert ("No fix" in section.split("\n## ")[0].split("\n")[0]) <= (info.fix is None), info.code
