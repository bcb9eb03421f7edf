"""Give findings their fixes: each one alone, as edits of the file as it is.

A fix is dropped where its result is not Python, or is no change. libcst is imported only where some finding's
rule has a fix.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..deep_stack import with_deep_stack
from ..model import Finding, Fix
from ..source.reading import SourceFile
from .registry import fixable_codes, fixer_of

if TYPE_CHECKING:
    from .script import Script


def with_fixes(findings: Iterable[Finding], sources: Mapping[str, SourceFile]) -> tuple[Finding, ...]:
    """The findings, those that can be mended with their ``fix``."""
    given = tuple(findings)
    if not any(finding.code in fixable_codes() for finding in given):
        return given
    scripts: dict[str, Script | None] = {}
    return with_deep_stack(lambda: tuple(_with_fix(finding, sources, scripts) for finding in given))


def _with_fix(
    finding: Finding, sources: Mapping[str, SourceFile], scripts: dict[str, Script | None]
) -> Finding:
    fixer = fixer_of(finding.code)
    filename = finding.site.filename
    if fixer is None or filename not in sources:
        return finding
    if filename not in scripts:
        scripts[filename] = _script(sources[filename])
    script = scripts[filename]
    if script is None:
        return finding
    proposal = fixer(finding, script)
    if proposal is None or proposal.text == script.text or not _is_python(script, proposal.text):
        return finding
    from .edits import edits_between

    edits = edits_between(filename, script.text, proposal.text)
    return replace(finding, fix=Fix(proposal.applicability, proposal.message, edits))


MAX_ROWS = 20_000  # of a longer file, taking it apart to mend it costs many times what its analysis did


def _script(source: SourceFile) -> Script | None:
    if source.content.count(b"\n") > MAX_ROWS:
        return None
    from .script import CannotEdit, Script

    try:
        return Script(source)
    except CannotEdit:
        return None


def _is_python(script: Script, text: str) -> bool:
    """Whether a changed text compiles as the old one did, and can be written in the file's encoding."""
    try:
        text.encode(script.source.encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text.replace("\r\n", "\n").replace("\r", "\n"), "fixed", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
