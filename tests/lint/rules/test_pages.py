"""Every rule's page tells the truth: the example is found by this rule, and what to use instead is clean."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import pytest
from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint
from spmdguard_lint.rules import registry

BY_THE_ENGINE = {"SPG901", "SPG902", "SPG903", "SPG904"}  # their examples are comments, or no Python at all
CODES = [code for code in registry.codes() if code not in BY_THE_ENGINE]


def python_blocks(page: str, section: str) -> list[str]:
    """The Python code blocks of a page's section."""
    _, _, rest = page.partition(f"\n## {section}\n")
    body = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```python\n(.*?)^```", body, flags=re.MULTILINE | re.DOTALL)


def codes_in(source: str, *, select: Sequence[str] = ("",)) -> list[str]:
    """The codes reported for a source text."""
    config = Config(select=tuple(select))
    result = lint([], config, stdin=StandardInput(source.encode(), "example.py"))
    return sorted(finding.code for finding in result.findings)


def page_of(code: str) -> str:
    info = registry.rule_for(code)
    assert info is not None
    return info.page


@pytest.mark.parametrize("code", CODES)
def test_example_is_found(code: str) -> None:
    """The code under "Example" is real Python, and this rule reports something in each block."""
    blocks = python_blocks(page_of(code), "Example")
    assert blocks
    for block in blocks:
        ast.parse(block)
        assert code in codes_in(block, select=[code])


@pytest.mark.parametrize("code", CODES)
def test_use_instead_is_clean(code: str) -> None:
    """The code under "Use instead" is real Python, and no stable rule reports anything in it."""
    blocks = python_blocks(page_of(code), "Use instead")
    assert blocks
    for block in blocks:
        ast.parse(block)
        assert codes_in(block) == []


def test_blocks_are_taken_from_their_own_section() -> None:
    """The reader of the pages takes Python blocks only, and stops at the next heading."""
    page = "# x\n\n## Example\n```python\na\n```\n```toml\nb\n```\n\n## Use instead\n```python\nc\n```\n"
    assert (python_blocks(page, "Example"), python_blocks(page, "Use instead")) == (["a\n"], ["c\n"])


def test_a_wrong_page_would_be_noticed() -> None:
    """Swapping example and remedy makes both checks fail."""
    page = page_of("SPG101")
    example, instead = python_blocks(page, "Example")[0], python_blocks(page, "Use instead")[0]
    assert codes_in(instead, select=["SPG101"]) == []
    assert codes_in(example) == ["SPG101"]
