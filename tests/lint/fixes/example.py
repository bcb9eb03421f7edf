"""A program before and after one fix."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A program before and after one fix."""

    code: str
    applicability: str
    before: str
    after: str


def example(code: str, applicability: str, before: str, after: str) -> Example:
    return Example(
        code, applicability, textwrap.dedent(before).lstrip("\n"), textwrap.dedent(after).lstrip("\n")
    )
