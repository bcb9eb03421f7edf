"""Every text with findings that the tests have, and what becomes of it when it is fixed."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spmdguard_lint.config import Config
from spmdguard_lint.engine import LintResult, StandardInput, lint
from spmdguard_lint.fixes.applying import Fixed, fix_project
from spmdguard_lint.fixes.edits import apply_edits
from spmdguard_lint.fixes.registry import fixable_codes
from spmdguard_lint.fixes.texts import raw_text
from spmdguard_lint.model import Finding
from spmdguard_lint.rules import registry
from spmdguard_lint.source.reading import SourceFile, decode_source

from tests.corpus.scoring import CASES, VARIANTS, cases
from tests.lint.fixes.examples import EXAMPLES

RULE_TESTS = Path(__file__).resolve().parents[1] / "rules"
CONFIG = Config(extend_select=tuple(sorted(fixable_codes())))


@dataclass(frozen=True)
class Subject:
    """One program: a path to lint, or a text."""

    name: str
    path: Path | None = None
    text: str = ""

    def lint(self, overlay: Mapping[str, SourceFile] | None = None) -> LintResult:
        """Lint it with the rules that have fixes named, so that their advice shows."""
        if self.path is not None:
            return lint([self.path], CONFIG, overlay=overlay)
        stdin = StandardInput(self.text.encode(), "snippet.py")
        return lint([], CONFIG, stdin=stdin, overlay=overlay)

    def fixed(self, *, unsafe: bool) -> Fixed:
        """What fixing it comes to."""
        return fix_project(self.lint, unsafe=unsafe)


def subjects() -> Iterator[Subject]:
    """The cases, both sides; the snippets of the rules' tests; the examples of the pages."""
    for root in (CASES, VARIANTS):
        for case in cases(root):
            for which in ("bad", "good"):
                if side := case.side(which):
                    yield Subject(f"{case.name}/{which}", side)
    for path in sorted(RULE_TESTS.glob("test_spg*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
                text = textwrap.dedent(node.value)
                if _is_program(text):
                    yield Subject(f"{path.stem}:{node.lineno}", text=text)
    for number, example in enumerate(EXAMPLES):
        yield Subject(f"example-{number}", text=example.before)
    for info in registry.all_rules():
        for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", info.page, re.M | re.S)):
            if _is_program(block):
                yield Subject(f"{info.code}-page-{number}", text=block)


def _is_program(text: str) -> bool:
    try:
        return "import" in text and bool(ast.parse(text).body)
    except SyntaxError:
        return False


def each_fix_alone(
    subject: Subject, result: LintResult
) -> Iterator[tuple[Finding, SourceFile, SourceFile, LintResult]]:
    """Every finding with a fix, the file before and after this fix alone, and what is found then."""
    for finding in result.findings:
        if finding.fix is not None:
            before = result.sources[finding.site.filename]
            text = apply_edits(raw_text(before), finding.fix.edits)
            after = decode_source(text.encode(before.encoding), before.filename, before.path)
            yield finding, before, after, subject.lint({before.filename: after})


def comments(source: SourceFile) -> Counter[str]:
    """The comments of a file, without suppressions, which a fix may remove."""
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    found = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return Counter(text for text in found if "spmdguard: ignore" not in text)
