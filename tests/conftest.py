"""Fixtures for all tests: files to lint, the command in this process and in its own, made-up rules."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROCESS_TIMEOUT_S = 120


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    exit_code: int
    out: str
    err: str


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave long tests out unless they are asked for."""
    if os.environ.get("SPMDGUARD_LONG") == "1":
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long; set SPMDGUARD_LONG=1"))


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Write files below a fresh folder, and make that the working directory."""

    def write(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path

    monkeypatch.chdir(tmp_path)
    return write


@pytest.fixture
def in_process(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command of the linter here; ``analysis`` stands in for the real one."""
    from spmdguard_lint.cli import lint_command, rule_command

    def run(*argv: str, analysis: Any = None) -> Outcome:
        capsys.readouterr()
        try:
            if argv[0] == "lint":
                exit_code = lint_command(argv[1:], analysis=analysis)
            else:
                exit_code = rule_command(argv[1:])
        except SystemExit as error:
            exit_code = int(error.code or 0)
        captured = capsys.readouterr()
        return Outcome(exit_code, captured.out, captured.err)

    return run


@pytest.fixture
def process() -> Callable[..., Outcome]:
    """Run ``python -m spmdguard`` as a user does."""

    def run(
        *argv: str, stdin: bytes = b"", cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "spmdguard", *argv],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            timeout=PROCESS_TIMEOUT_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


_PROBE_RULES = {
    "190": ("probe-error", "error", "stable"),
    "191": ("probe-warning", "warning", "stable"),
    "290": ("probe-preview", "error", "preview"),
    "390": ("probe-advice", "info", "stable"),
}
_PROBE_PAGE = '''"""
# {name} (SPG{number})

## What it does
Finds calls of `probe{number}`. Nothing else.
"""

from spmdguard_lint.rules.registry import rule

RULE = rule(code="SPG{number}", name="{name}", severity="{severity}", status="{status}", page=__doc__)
'''
_PROBE = re.compile(r"probe(\d{3})(?:_(definite|likely|possible))?\(")


@pytest.fixture
def probe_rules(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Four made-up rules beside the real ones, each a file as any rule is."""
    from spmdguard_lint import rules
    from spmdguard_lint.rules import registry

    folder = tmp_path_factory.mktemp("rules")
    for number, (name, severity, status) in _PROBE_RULES.items():
        page = _PROBE_PAGE.format(number=number, name=name, severity=severity, status=status)
        (folder / f"spg{number}_{name.replace('-', '_')}.py").write_text(page, encoding="utf-8")
    monkeypatch.setattr(rules, "__path__", [*rules.__path__, str(folder)])
    caches = (registry.codes, registry.rule_for, registry._rule_files, registry._module)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def probes(probe_rules: None) -> Callable[..., Iterable[Any]]:
    """An analysis that reports calls such as ``probe190()`` and ``probe191_possible()``."""
    from spmdguard_lint.model import Finding, Location, Site

    def analysis(project: Any, config: Any, progress: Any) -> Iterator[Finding]:
        for source in [module.source for module in reversed(project.all_modules)]:
            for row, line in enumerate(source.lines, 1):
                for match in _PROBE.finditer(line):
                    name, severity, _ = _PROBE_RULES[match[1]]
                    start, end = Location(row, match.start() + 1), Location(row, match.end() + 1)
                    yield Finding(
                        code=f"SPG{match[1]}",
                        name=name,
                        severity=severity,  # type: ignore[arg-type]  # a str in the table
                        certainty=match[2] or "likely",  # type: ignore[arg-type]  # a str in the pattern
                        message=f"`{match[0]})` is called",
                        help="call something else",
                        site=Site(source.filename, start, end),
                    )

    return analysis
