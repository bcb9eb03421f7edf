"""Comments that silence findings or inform the analysis, and comments that do neither."""

from __future__ import annotations

import io
import sys
import sysconfig
import tokenize
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spmdguard_lint.source import suppressions
from spmdguard_lint.source.suppressions import read_comments


def findings(outcome_out: str) -> list[tuple[int, str]]:
    """(row, code) of every line in the concise format."""
    lines = [line.split(":") for line in outcome_out.splitlines() if ".py:" in line]
    return [(int(parts[1]), parts[3].split()[0]) for parts in lines]


def lint_text(text: str, tree, in_process, probes, *options: str) -> list[tuple[int, str]]:
    tree({"a.py": text})
    outcome = in_process("lint", "a.py", "--output-format", "concise", *options, analysis=probes)
    return findings(outcome.out)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("probe190()", [(1, "SPG190")]),
        ("probe190()  # spmdguard: ignore[SPG190] -- all ranks come here", []),
        ("probe190()  # spmdguard: ignore[probe-error] -- by name", []),
        ("probe190()  # spmdguard: ignore[spg190]", []),
        ("probe190()  # spmdguard:ignore[SPG190]", []),
        ("probe190()  # spmdguard: ignore[SPG191, SPG190] -- one of two", [(1, "SPG901")]),
        ("probe190()  # spmdguard: ignore[SPG191]", [(1, "SPG190"), (1, "SPG901")]),
        ("probe190()  # spmdguard: ignore", []),
        ("probe190()  # noqa: SPG190", []),
        ("probe190()  # noqa: E501,SPG190", []),
        ("probe190()  # noqa: E501 SPG190", []),
        ("probe190()  # NOQA:SPG190", []),
        ("probe190()  # noqa", []),
        ("probe190()  # noqa: E501", [(1, "SPG190")]),
        ("probe190()  # type: ignore  # spmdguard: ignore[SPG190]", []),
        ("probe190('# spmdguard: ignore[SPG190]')", [(1, "SPG190")]),
        ('probe190("""\n# spmdguard: ignore[SPG190]\n""")', [(1, "SPG190")]),
        ("x = 1  # spmdguard: ignore[SPG190]", [(1, "SPG901")]),
        ("x = 1  # spmdguard: ignore", [(1, "SPG901")]),
        ("x = 1  # noqa: SPG190", [(1, "SPG901")]),
        ("x = 1  # noqa", []),
    ],
)
def test_suppression_on_the_line(line, expected, tree, in_process, probes):
    """A suppression silences what it names, on its line, in a comment only; an unused one is reported."""
    assert lint_text(line + "\n", tree, in_process, probes) == expected


def test_suppression_at_the_end_of_a_statement(tree, in_process, probes):
    """A suppression after a statement's last bracket covers the whole statement."""
    text = "x = [\n    probe190(),\n    1,\n]  # spmdguard: ignore[SPG190]\nprobe190()\n"
    assert lint_text(text, tree, in_process, probes) == [(5, "SPG190")]


def test_suppression_inside_a_statement_covers_its_own_row(tree, in_process, probes):
    """A suppression inside brackets covers the row that it stands on, and no other."""
    text = "x = [\n    probe190(),  # spmdguard: ignore[SPG190]\n    probe190(),\n]\n"
    assert lint_text(text, tree, in_process, probes) == [(3, "SPG190")]


def test_suppression_on_a_row_of_its_own_covers_the_next_statement(tree, in_process, probes):
    """A suppression that stands alone covers the next statement and no more."""
    text = "# spmdguard: ignore[SPG190] -- why\n\n# more\nx = f(\n    probe190(),\n)\nprobe190()\n"
    assert lint_text(text, tree, in_process, probes) == [(7, "SPG190")]


def test_noqa_on_a_row_of_its_own_covers_nothing(tree, in_process, probes):
    """A `noqa` that stands alone covers its own row, as flake8 has it."""
    assert lint_text("# noqa: SPG190\nprobe190()\n", tree, in_process, probes) == [
        (1, "SPG901"),
        (2, "SPG190"),
    ]


def test_suppression_after_a_backslash(tree, in_process, probes):
    """A statement continued by a backslash is one statement."""
    text = "x = \\\n    probe190() + \\\n    1  # spmdguard: ignore[SPG190]\n"
    assert lint_text(text, tree, in_process, probes) == []


def test_unused_suppression_can_be_silenced(tree, in_process, probes):
    """A suppression that names SPG901 keeps an otherwise unused one from being reported."""
    text = "x = 1  # spmdguard: ignore[SPG190, SPG901] -- used on other platforms\n"
    assert lint_text(text, tree, in_process, probes) == []


def test_bare_suppression_does_not_hide_that_a_file_cannot_be_parsed(tree, in_process, probes):
    """A bare suppression leaves the rules about the run itself alone."""
    found = lint_text("x = (  # spmdguard: ignore\n", tree, in_process, probes)
    assert sorted(found) == [
        (1, "SPG901"),
        (1, "SPG903"),
    ]


def test_unused_is_judged_for_selected_codes_only(tree, in_process, probes):
    """A suppression of a rule that this run leaves out is not called unused."""
    text = "x = 1  # spmdguard: ignore[SPG190]\n"
    assert lint_text(text, tree, in_process, probes, "--ignore", "SPG190") == []
    assert lint_text(text, tree, in_process, probes, "--select", "SPG191,SPG901") == []
    preview = "x = 1  # spmdguard: ignore[SPG290]\n"
    assert lint_text(preview, tree, in_process, probes) == []
    assert lint_text(preview, tree, in_process, probes, "--preview") == [(1, "SPG901")]


@pytest.mark.parametrize(
    ("comment", "help_text"),
    [
        ("# spmdguard: ignore[SPG19]", "did you mean `SPG19"),
        ("# spmdguard: ignore[probe-eror]", "did you mean `probe-error`?"),
        ("# spmdguard: unifrom", "did you mean `uniform`?"),
        ("# spmdguard: protocoll -- both", "did you mean `protocol`?"),
        ("# noqa: SPG998", "did you mean"),
    ],
)
def test_unknown_code_is_reported_with_the_nearest(comment, help_text, tree, in_process, probes):
    """SPG902 names the code or word that does not exist, and the nearest that does."""
    tree({"a.py": f"x = 1  {comment}\n"})
    outcome = in_process("lint", "a.py", "--output-format", "full", analysis=probes)
    assert outcome.out.startswith("warning[SPG902]")
    assert help_text in outcome.out


def test_prose_about_the_tool_is_no_directive():
    """A comment that merely mentions the tool is left alone."""
    assert read_comments("x = 1  # spmdguard: see the guide for why\n").unknown == ()


def test_directives_speak_of_their_statement():
    """`uniform` and `protocol` hold for every row of the statement they end, or that follows them."""
    text = "a = f(\n  1,\n)  # spmdguard: uniform\n# spmdguard: protocol\nif (\n    a\n):\n    pass\n"
    comments = read_comments(text)
    assert [row for row in range(1, 9) if comments.says(row, "uniform")] == [1, 2, 3]
    assert [row for row in range(1, 9) if comments.says(row, "protocol")] == [5, 6, 7]


def test_files_without_our_words_are_not_scanned(monkeypatch):
    """A file that mentions neither the tool nor `noqa` costs no scan."""
    monkeypatch.setattr(suppressions, "_comments", lambda text: pytest.fail("scanned"))
    assert read_comments("x = 1  # a comment\n") is suppressions.NO_COMMENTS


def comments_by_tokenize(text: str) -> list[tuple[int, int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(t.start[0], t.start[1] + 1, t.string) for t in tokens if t.type == tokenize.COMMENT]


def comments_by_us(text: str) -> list[tuple[int, int, str]]:
    return sorted((c.row, c.column, c.text) for c in suppressions._comments(text))


def test_same_comments_as_tokenize_on_the_standard_library():
    """On real files the scanner finds the same comments at the same places as Python's tokenizer."""
    folder = Path(sysconfig.get_path("stdlib"))
    num_compared = 0
    for path in [*sorted(folder.glob("*.py"))[:60], *sorted(folder.glob("asyncio/*.py"))]:
        text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        assert comments_by_us(text) == comments_by_tokenize(text), path.name
        num_compared += 1
    assert num_compared > 60


_PIECES = st.sampled_from(
    ["x", " ", "\n", "# c", "'", '"', "'''", '"""', "(", ")", "[", "]", "\\\n", "\\", "r", "f", "=", "1", "#"]
)


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="tokenize there refuses texts that it accepted before"
)
@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=25).map("".join))
def test_same_comments_as_tokenize_on_made_up_text(text):
    """On any text that Python's tokenizer and compiler accept, the comments are the same."""
    try:
        expected = comments_by_tokenize(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "made-up", "exec")
    except (SyntaxError, ValueError, tokenize.TokenError, IndentationError):
        return
    assert comments_by_us(text) == expected
