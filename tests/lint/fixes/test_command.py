"""`--fix`, `--unsafe-fixes`, `--diff` and the JSON field, as users meet them: files, bytes, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

SAFE = """\
import torch.distributed as dist


def share(table):
    for name in {"a", "b"}:
        dist.broadcast(table[name], src=0)
"""
SAFE_FIXED = SAFE.replace('{"a", "b"}', 'sorted({"a", "b"})')
UNSAFE = """\
import torch.distributed as dist


def meet():
    if dist.get_rank() == 0:
        dist.barrier()
"""
UNSAFE_FIXED = "import torch.distributed as dist\n\n\ndef meet():\n    dist.barrier()\n"


def test_fix_applies_safe_fixes_and_reports_the_rest(tree, in_process):
    """`--fix` changes what is safe; what needs `--unsafe-fixes` stays, and the exit code says so."""
    root = tree({"safe.py": SAFE, "unsafe.py": UNSAFE})
    outcome = in_process("lint", "--fix", ".", "--output-format", "concise")
    assert (outcome.exit_code, outcome.err) == (1, "")
    assert (root / "safe.py").read_text() == SAFE_FIXED
    assert (root / "unsafe.py").read_text() == UNSAFE
    assert "unsafe.py:6:9: SPG101" in outcome.out
    assert "Fixed 1 finding in 1 file." in outcome.out
    outcome = in_process("lint", "--fix", "--unsafe-fixes", ".")
    assert outcome.exit_code == 0
    assert (root / "unsafe.py").read_text() == UNSAFE_FIXED
    assert in_process("lint", "--diff", "--unsafe-fixes", ".").exit_code == 0


def test_unsafe_fixes_alone_change_nothing(tree, in_process):
    """`--unsafe-fixes` says which fixes count, and applies none without `--fix`."""
    root = tree({"safe.py": SAFE})
    assert in_process("lint", "--unsafe-fixes", ".").exit_code == 1
    assert (root / "safe.py").read_text() == SAFE


def test_diff_shows_and_changes_nothing(tree, in_process):
    """`--diff` prints a unified difference and ends with 1 where there is one, with 0 where there is none."""
    root = tree({"safe.py": SAFE, "unsafe.py": UNSAFE})
    outcome = in_process("lint", "--diff", ".")
    assert outcome.exit_code == 1
    assert outcome.out.splitlines()[:2] == ["--- safe.py", "+++ safe.py"]
    assert '-    for name in {"a", "b"}:\n+    for name in sorted({"a", "b"}):\n' in outcome.out
    assert "unsafe.py" not in outcome.out
    assert outcome.err == "Would fix 1 finding in 1 file.\n"
    assert (root / "safe.py").read_text() == SAFE
    assert in_process("lint", "--diff", "unsafe.py").exit_code == 0
    assert in_process("lint", "--diff", "--exit-zero", ".").exit_code == 0
    (root / "unsafe.py").unlink()
    patch = subprocess.run(
        ["git", "apply", "-p0", "-"], input=outcome.out, text=True, timeout=60, check=False, cwd=root
    )
    assert patch.returncode == 0
    assert (root / "safe.py").read_text() == SAFE_FIXED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SAFE.replace("\n", "\r\n").encode(), SAFE_FIXED.replace("\n", "\r\n").encode()),
        (b"\xef\xbb\xbf" + SAFE.encode(), b"\xef\xbb\xbf" + SAFE_FIXED.encode()),
        (
            b"# coding: latin-1\n# \xe9t\xe9\n" + SAFE.encode(),
            b"# coding: latin-1\n# \xe9t\xe9\n" + SAFE_FIXED.encode(),
        ),
        (SAFE.rstrip("\n").encode(), SAFE_FIXED.rstrip("\n").encode()),
        (
            ("# \u00e4\u2028\x0c\n" + SAFE.replace("    ", "\t")).encode(),
            ("# \u00e4\u2028\x0c\n" + SAFE_FIXED.replace("    ", "\t")).encode(),
        ),
    ],
    ids=["crlf", "bom", "latin-1", "no-last-newline", "tabs-and-odd-separators"],
)
def test_bytes_that_are_not_fixed_stay(before, after, tree, in_process):
    """Line endings, byte order mark, encoding, tabs and a missing last newline are as they were."""
    root = tree({"a.py": before})
    assert in_process("lint", "--fix", "a.py").exit_code == 0
    assert (root / "a.py").read_bytes() == after


def test_inserted_lines_have_the_files_own_newline(tree, in_process):
    """A fix that inserts lines into a CRLF file inserts CRLF lines."""
    root = tree({"a.py": SAFE.replace('{"a", "b"}', "batches").replace("\n", "\r\n").encode()})
    text = (
        "import torch.distributed as dist\n\n\ndef main(train):\n    try:\n        train()\n"
        "        dist.barrier()\n    except Exception:\n        dist.destroy_process_group()\n        raise\n"
    )
    (root / "a.py").write_bytes(text.replace("\n", "\r\n").encode())
    assert in_process("lint", "--fix", "--select", "SPG605", "a.py").exit_code == 0
    content = (root / "a.py").read_bytes()
    assert b"with suppress(Exception):\r\n            dist.destroy" in content
    assert content.count(b"\n") == content.count(b"\r\n")


def test_permissions_and_links_stay(tree, in_process):
    """A fixed file keeps its mode; a link stays a link, and its target is fixed."""
    root = tree({"real/a.py": SAFE})
    (root / "real/a.py").chmod(0o755)
    (root / "b.py").symlink_to("real/a.py")
    assert in_process("lint", "--fix", "b.py", "real").exit_code == 0
    assert (root / "b.py").is_symlink()
    assert (root / "real/a.py").read_text() == SAFE_FIXED
    assert (root / "real/a.py").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in (root / "real").iterdir()) == ["a.py"]


def test_a_file_that_cannot_be_written_is_said(tree, in_process):
    """A read-only file is left alone with an error and exit code 2; the others are fixed."""
    root = tree({"a.py": SAFE, "b.py": SAFE})
    (root / "a.py").chmod(0o444)
    outcome = in_process("lint", "--fix", ".")
    assert outcome.exit_code == 2
    assert outcome.err == "spmdguard: error: cannot write a.py: it is read-only\n"
    assert (root / "a.py").read_text() == SAFE
    assert (root / "b.py").read_text() == SAFE_FIXED


def test_a_file_that_changed_meanwhile_is_left_alone(tree):
    """What somebody else wrote since the file was read is not overwritten."""
    from spmdguard_lint.fixes.writing import CannotWrite, write_fixed
    from spmdguard_lint.source.reading import decode_source, read_source

    root = tree({"a.py": SAFE})
    before = read_source(root / "a.py", "a.py")
    (root / "a.py").write_text("x = 1\n")
    with pytest.raises(CannotWrite, match="it was changed"):
        write_fixed(before, decode_source(SAFE_FIXED.encode(), "a.py", root / "a.py"))
    assert (root / "a.py").read_text() == "x = 1\n"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python's own parser reads the statement")
def test_newer_grammar_is_not_fixed(tree, in_process):
    """A file that only the reader of newer grammar understands is linted, and never edited."""
    text = SAFE + "\n\ntype Table = dict[str, int]\n"
    root = tree({"a.py": text})
    outcome = in_process("lint", "--fix", "a.py", "--output-format", "json")
    assert [f["code"] for f in json.loads(outcome.out)] == ["SPG403"]
    assert (root / "a.py").read_text() == text


def test_standard_input(process):
    """`-` with `--fix` prints the fixed text, changed or not, and reports to standard error."""
    outcome = process("lint", "--fix", "-", stdin=SAFE.encode())
    assert (outcome.exit_code, outcome.out) == (0, SAFE_FIXED)
    outcome = process("lint", "--fix", "-", "--output-format", "concise", stdin=UNSAFE.encode())
    assert (outcome.exit_code, outcome.out) == (1, UNSAFE)
    assert "-:6:9: SPG101" in outcome.err
    outcome = process("lint", "--diff", "-", stdin=SAFE.encode())
    assert outcome.out.startswith("--- -\n+++ -\n")


def test_json_carries_the_fix(tree, in_process):
    """The `fix` of the JSON report: applicability, message, edits with both locations; null where there is none."""
    tree({"a.py": SAFE, "b.py": UNSAFE.replace("if dist.get_rank() == 0", "while dist.get_rank() == 0")})
    found = json.loads(in_process("lint", ".", "--output-format", "json").out)
    fixes = {item["code"]: item["fix"] for item in found}
    assert fixes["SPG403"] == {
        "applicability": "safe",
        "message": "iterate over `sorted(...)` of the set",
        "edits": [
            {
                "content": '    for name in sorted({"a", "b"}):\n',
                "location": {"row": 5, "column": 1},
                "end_location": {"row": 6, "column": 1},
            }
        ],
    }
    assert [fix for code, fix in fixes.items() if code != "SPG403"] == [None]


def test_libcst_is_loaded_only_for_a_fix(tree):
    """A run with findings loads libcst neither for a text report nor, without a fixable finding, for `--fix`."""
    tree({"a.py": UNSAFE, "b.py": "import torch.distributed as dist\ndist.barrier()\n"})
    program = (
        "import sys\nfrom spmdguard.cli import main\nmain(sys.argv[1:])\n"
        "print('libcst' in sys.modules, file=sys.stderr)\n"
    )

    def loads(*argv: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, "lint", *argv],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.stderr.splitlines()[-1]

    assert loads("a.py") == "False"
    assert loads("--fix", "b.py") == "False"
    assert loads("--fix", "a.py") == "True"


def test_a_fix_that_brings_a_finding_is_left_out(tree, in_process, monkeypatch):
    """A fix after which another finding stands there is undone and said; the good fix of the same file stays."""
    from spmdguard_lint.fixes import planning, registry

    def wrong(finding, script):
        return registry.Proposal(
            "safe", "make it worse", script.text + "\n\nif dist.get_rank() == 1:\n    dist.barrier()\n"
        )

    real = registry.fixer_of
    monkeypatch.setattr(planning, "fixer_of", lambda code: wrong if code == "SPG101" else real(code))
    root = tree({"a.py": SAFE + UNSAFE.removeprefix("import torch.distributed as dist\n")})
    outcome = in_process("lint", "--fix", "a.py", "--output-format", "concise")
    assert (root / "a.py").read_text() == SAFE_FIXED + UNSAFE.removeprefix(
        "import torch.distributed as dist\n"
    )
    left = "1 fix left out, which would leave its finding or bring another: SPG101 at a.py:"
    assert f"Fixed 1 finding in 1 file; {left}" in outcome.out
    assert "may have a fix" not in outcome.out


def test_what_was_tried_is_not_offered_again(tree, in_process, monkeypatch):
    """After unsafe fixes were tried no fix is promised; after the safe ones alone, the unsafe ones still are."""
    from spmdguard_lint.fixes import planning, registry

    def wrong(finding, script):
        return registry.Proposal("unsafe", "do nothing of use", script.text + "\nx = 1\n")

    tree({"a.py": UNSAFE})
    monkeypatch.setattr(planning, "fixer_of", lambda code: wrong)
    tried = in_process("lint", "--fix", "--unsafe-fixes", "a.py").out
    assert (
        "Nothing to fix; 1 fix left out, which would leave its finding or bring another: SPG101 at a.py:"
        in tried
    )
    assert "may have a fix" not in tried
    assert (
        "1 finding may have a fix: `--diff --unsafe-fixes` shows it."
        in in_process("lint", "--fix", "a.py").out
    )


LOOPS = """\
import torch.distributed as dist


def first(batches, x):
    for batch in batches:
        batch.loss.backward()
        dist.all_reduce(x)
        if dist.get_rank() == 0 and batch.empty:
            break


def second(batches, x):
    for batch in batches:
        batch.loss.backward()
        dist.all_reduce(x)
        if dist.get_rank() == 0:
            dist.barrier()
        if dist.get_rank() == 1:
            dist.all_reduce(x)
        if dist.get_rank() == 0 and batch.empty:
            break
"""


def test_fixes_that_touch_one_another_come_one_after_the_other(tree, in_process):
    """Fixes of neighbouring lines, and two that need the same import, are all applied, each once."""
    root = tree({"a.py": LOOPS})
    outcome = in_process("lint", "--fix", "--unsafe-fixes", "a.py")
    text = (root / "a.py").read_text()
    assert outcome.exit_code == 0, outcome.out
    assert "Fixed 4 findings in 1 file." in outcome.out
    assert text.count("from spmdguard import sync_should_stop\n") == 1
    assert text.count("if sync_should_stop(dist.get_rank() == 0 and batch.empty):\n            break\n") == 2
    assert "        dist.all_reduce(x)\n        dist.barrier()\n        dist.all_reduce(x)\n" in text


def test_fixes_that_never_end_are_undone(tree, in_process, monkeypatch):
    """Fixes each of which makes work for the next one end at a bound, and the file is as it was."""
    from spmdguard_lint.fixes import applying, planning, registry

    def endless(finding, script):
        number = int(re.findall(r"== (\d+)`", finding.message)[0])
        text = script.text.replace(f"== {number}", f"== {number + 1}")
        return registry.Proposal("safe", "go on", text)

    monkeypatch.setattr(planning, "fixer_of", lambda code: endless)
    monkeypatch.setattr(applying, "MAX_ROUNDS", 6)
    root = tree({"a.py": UNSAFE})
    assert in_process("lint", "--fix", "a.py").exit_code == 1
    assert (root / "a.py").read_text() == UNSAFE
