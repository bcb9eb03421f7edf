"""Every fix on every case, rule test and page: Python, idempotent, clean, comments kept, nothing else touched."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from spmdguard_lint.engine import LintResult
from spmdguard_lint.fixes.applying import come, fix_project, stayed
from spmdguard_lint.fixes.planning import with_fixes
from spmdguard_lint.source.reading import SourceFile

from tests.lint.fixes.walking import Subject, comments, each_fix_alone, subjects

SUBJECTS = list(subjects())
SHARDS = 8


@pytest.mark.parametrize("shard", [0, *(pytest.param(n, marks=pytest.mark.once) for n in range(1, SHARDS))])
def test_fixes_of_every_subject(shard: int) -> None:
    """Each fix alone, the safe ones together, and all together: right on every subject that has any."""
    wrong: list[str] = []
    for subject in SUBJECTS[shard::SHARDS]:
        found = subject.lint()
        result = replace(found, findings=with_fixes(found.findings, found.sources))
        kinds = {finding.fix.applicability for finding in result.findings if finding.fix is not None}
        wrong += (f"{subject.name}: {text}" for text in alone(subject, result))
        if "safe" in kinds:
            wrong += (f"{subject.name}: safe together: {text}" for text in together(subject, result, False))
        if "unsafe" in kinds:
            wrong += (f"{subject.name}: all together: {text}" for text in together(subject, result, True))
    assert wrong == []


def alone(subject: Subject, result: LintResult) -> Iterator[str]:
    """What is wrong with single fixes: the finding stays, one comes that has no fix, a comment is lost."""
    for finding, before, after, then in each_fix_alone(subject, result):
        ast.parse(after.text)
        new = come([finding], result.findings, then.findings)
        given = with_fixes(then.findings, then.sources) if new else ()
        unmended = {(f.site.filename, f.code, f.message) for f in given if f.fix is None}
        where = f"{finding.code} row {finding.site.start.row}"
        if stayed([finding], result.findings, then.findings) or new & unmended:
            yield f"{where}: {sorted(new)}"
        if comments(before) != comments(after):
            yield f"{where}: comments"


def together(subject: Subject, result: LintResult, unsafe: bool) -> Iterator[str]:
    """What is wrong with fixing to the end: a new finding, a lost comment, a second time that changes more."""
    fixed = subject.fixed(unsafe=unsafe)
    for name, after in fixed.after.items():
        ast.parse(after.text)
        if comments(fixed.before[name]) != comments(after):
            yield f"{name}: comments"
    if come((), result.findings, fixed.findings):
        yield "new findings"

    def lint_again(overlay: Mapping[str, SourceFile]) -> LintResult:
        return subject.lint({**fixed.after, **overlay})

    if fix_project(lint_again, unsafe=unsafe).after:
        yield "not idempotent"


def test_the_walk_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fix that keeps its finding, brings another one and loses a comment is noticed."""
    from spmdguard_lint.fixes import planning, registry

    more = "\n\nif dist.get_rank() == 1:\n    dist.all_reduce(x)\n"

    def wrong(finding, script):
        return registry.Proposal("safe", "make it worse", script.text.replace("  # all", "") + more)

    monkeypatch.setattr(planning, "fixer_of", lambda code: wrong if code == "SPG101" else None)
    text = "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    dist.barrier()  # all\n"
    subject = Subject("wrong", text=text)
    found = subject.lint()
    result = replace(found, findings=with_fixes(found.findings, found.sources))
    assert [text.split(": ")[-1] for text in alone(subject, result)][-1] == "comments"
    assert len(list(alone(subject, result))) == 2
