"""README and tutorial are true: their commands print what they show.

After a change of messages, `SPMDGUARD_UPDATE_DOCS=1 pytest tests/lint/test_cli_docs.py` writes the new output
into the pages; read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/tutorial.md", "docs/fixes.md")
LINKED = (*PAGES, "CONTRIBUTING.md", "CHANGELOG.md", "docs/index.md")
WIDTH = "100"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^```console\n\$ (spmdguard [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_files(text: str, folder: Path) -> None:
    """Write every Python block that begins with `# name.py` to that file."""
    for language, block in _BLOCK.findall(text):
        named = re.match(r"# (\S+\.py)\n", block)
        if language == "python" and named:
            (folder / named[1]).write_text(block, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_the_page_shows(page, tmp_path, process):
    """Each shown `spmdguard` command, run on the page's own files, prints exactly the shown output."""
    text = (ROOT / page).read_text(encoding="utf-8")
    write_files(text, tmp_path)

    def run(session: re.Match[str]) -> str:
        outcome = process(*shlex.split(session[1])[1:], cwd=tmp_path, env={"COLUMNS": WIDTH})
        assert outcome.err == "" or "--diff" in session[1]
        return f"```console\n$ {session[1]}\n{outcome.out.strip()}\n```"

    now, num_sessions = _SESSION.subn(run, text)
    assert num_sessions > 0
    if os.environ.get("SPMDGUARD_UPDATE_DOCS") == "1":
        (ROOT / page).write_text(now, encoding="utf-8")
    assert now == text


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_are_python(page):
    """Every Python block of the page compiles."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for language, block in _BLOCK.findall(text):
        if language == "python":
            compile(block, page, "exec")


@pytest.mark.parametrize("page", LINKED)
def test_links_lead_somewhere(page):
    """Every relative link of the page leads to a file."""
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    missing = [target for target in targets if target and not ((ROOT / page).parent / target).exists()]
    assert missing == []
