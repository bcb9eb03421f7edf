"""Input that is not what one hopes for: the run ends, says what is wrong and where, and reads the rest."""

from __future__ import annotations

import json

import pytest
from spmdguard_lint.source.reading import CannotRead, decode_source, read_source


def nothing(project, config, progress):
    """An analysis that finds nothing."""
    return []


def reports(outcome) -> list[tuple[str, int, str]]:
    return [(f["filename"], f["location"]["row"], f["code"]) for f in json.loads(outcome.out)]


@pytest.mark.parametrize(
    ("content", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"x = 1", "utf-8", "x = 1"),
        (b"\xef\xbb\xbfx = 1\n", "utf-8", "x = 1\n"),
        (b"\xef\xbb\xbf# coding: utf-8\nx\n", "utf-8", "# coding: utf-8\nx\n"),
        (b"a = 1\r\nb = 2\r\n", "utf-8", "a = 1\nb = 2\n"),
        (b"a = 1\rb = 2\r", "utf-8", "a = 1\nb = 2\n"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "iso8859-1", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'", "cp1252", None),
        (b"\n# coding: latin-1\n'\xe9'\n", "iso8859-1", None),
        (b"x = 1\n# coding: latin-1\n", "utf-8", None),
        ("s = 'åß漢'\n".encode(), "utf-8", "s = 'åß漢'\n"),
        (
            b"# coding: euc-jp\ns = '" + "漢字".encode("euc-jp") + b"'\n",
            "euc_jp",
            "# coding: euc-jp\ns = '漢字'\n",
        ),
    ],
)
def test_decodes_as_python_does(content, encoding, text):
    """Byte order marks, encoding comments and any newline are read as Python reads them."""
    source = decode_source(content, "a.py")
    assert source.encoding == encoding
    assert source.content == content
    if text is not None:
        assert source.text == text
    compile(content, "a.py", "exec")


@pytest.mark.parametrize(
    ("content", "row", "column", "words"),
    [
        (b"x = 1\ny = '\xff'\n", 2, 6, "byte 0xff is not valid utf-8"),
        (b"x = 1\r\ny = '\xc3\xa9\xff'\n", 2, 7, "byte 0xff"),
        (b"# coding: nonsense\n", 1, 1, "unknown encoding `nonsense`"),
        (b"#\n# coding: nonsense\n", 2, 1, "unknown encoding `nonsense`"),
        (b"\xef\xbb\xbf# coding: latin-1\n", 1, 1, "byte order mark but declares `latin-1`"),
        ("x = 1\n".encode("utf-16"), 1, 1, "is UTF-16"),
        ("x = 1\n".encode("utf-32"), 1, 1, "is UTF-32"),
        (b"x = 1\ny\0 = 2\n", 2, 2, "null byte"),
        (b"# coding: zlib\nx = 1\n", 1, 1, "`zlib` cannot decode"),
        (b"# coding: ascii\ns = '\xe9'\n", 2, 6, "byte 0xe9 is not valid ascii"),
    ],
)
def test_says_why_and_where_it_cannot_decode(content, row, column, words):
    """A file that Python could not decode is named with row, column and reason."""
    with pytest.raises(CannotRead) as caught:
        decode_source(content, "a.py")
    assert (caught.value.filename, caught.value.row, caught.value.column) == ("a.py", row, column)
    assert words in caught.value.reason


def test_unreadable_file_is_reported_and_the_rest_read(tree, in_process):
    """A file whose bytes cannot be read is one finding; the other files are checked."""
    root = tree({"ok.py": "x = 1\n"})
    (root / "broken.py").symlink_to("/proc/self/mem")
    outcome = in_process("lint", ".", "--output-format", "json", analysis=nothing)
    assert (outcome.exit_code, reports(outcome)) == (1, [("broken.py", 1, "SPG903")])
    with pytest.raises(CannotRead, match="cannot be read"):
        read_source(root / "broken.py", "broken.py")


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("def f(:\n    pass\n", 1),
        ("x = 1\n  y = 2\n", 2),
        ("if x:\npass\n", 2),
        ("print 'hello'\n", 1),
        ("x = '''\n\n", 1),
        ("{{ template }} text\n", 1),
        ("return = 5\n", 1),
    ],
)
def test_syntax_error_is_reported_where_it_is(text, row, tree, in_process):
    """A file that is no Python is one finding on the row of the error, also where it has no collective."""
    tree({"a.py": text, "b.py": "x = 1\n"})
    outcome = in_process("lint", ".", "--output-format", "json", analysis=nothing)
    assert (outcome.exit_code, reports(outcome)) == (1, [("a.py", row, "SPG903")])


def test_syntax_error_is_reported_whatever_is_selected(tree, in_process):
    """A file that was not checked is never passed over in silence, unless SPG903 itself is ignored."""
    tree({"a.py": "def f(:\n"})
    run = ("lint", "a.py", "--output-format", "json")
    assert len(reports(in_process(*run, "--select", "SPG901", analysis=nothing))) == 1
    assert reports(in_process(*run, "--ignore", "SPG903", analysis=nothing)) == []


def test_empty_and_blank_files_are_clean(tree, process):
    """Empty files, and files of blank rows and comments, are clean."""
    root = tree({"a.py": "", "b.py": "\n\n\n", "c.py": "# only this", "d.py": b"\xef\xbb\xbf"})
    outcome = process("lint", ".", cwd=root)
    assert (outcome.exit_code, outcome.out) == (0, "No findings: 4 files checked.\n")


def test_empty_folder_is_clean(tree, process):
    """A folder without Python files is clean, and says that nothing was checked."""
    outcome = process("lint", ".", cwd=tree({}))
    assert (outcome.exit_code, outcome.out) == (0, "No findings: 0 files checked.\n")


def test_missing_path_is_an_error(tree, process):
    """A path that does not exist ends the run with exit code 2 and names the path."""
    outcome = process("lint", "a.py", "nowhere.py", cwd=tree({"a.py": "x = 1\n"}))
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err == "spmdguard: error: no such file or directory: nowhere.py\n"


def test_very_long_file(tree, process):
    """50,000 rows with a collective under a rank branch at their end are read to the end."""
    filler = "".join(f"def f{i}(x):\n    y = x + {i}\n    return y\n\n" for i in range(12_500))
    hazard = "def main():\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
    text = "import torch.distributed as dist\n" + filler + hazard
    outcome = process("lint", "a.py", "--output-format", "json", cwd=tree({"a.py": text}))
    assert (outcome.exit_code, outcome.err) == (1, "")
    ((filename, row, code),) = reports(outcome)
    assert (filename, code) == ("a.py", "SPG101")
    assert row >= 50_000


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 90 + "1" + ")" * 90 + "\n",
        "x = " + "(" * 5000 + "1" + ")" * 5000 + "\n",
        "x = " + "+".join(["1"] * 20_000) + "\n",
        "x = " + ".a".join(["x"] * 3000) + "\n",
        "x = " + "-" * 3000 + "1\n",
        "".join(" " * depth + "if x:\n" for depth in range(95)) + " " * 95 + "pass\n",
        "".join(" " * depth + f"def f{depth}():\n" for depth in range(95)) + " " * 95 + "pass\n",
        "if x: pass\n" + "elif x: pass\n" * 3000,
    ],
    ids=["parentheses", "many-parentheses", "sum", "attributes", "unary", "blocks", "functions", "elif"],
)
def test_deep_nesting_is_read_or_reported(text, tree, process):
    """Deep nesting is either read or reported; the process never crashes."""
    header = "import torch.distributed as dist\nrank = dist.get_rank()\ndist.barrier()\n"
    root = tree({"a.py": header + text})
    outcome = process("lint", "a.py", "--output-format", "json", cwd=root)
    assert outcome.err == ""
    codes = {code for _, _, code in reports(outcome)}
    assert (outcome.exit_code, codes) in [(0, set()), (1, {"SPG903"}), (1, {"SPG904"})]


def test_hostile_names_do_not_reach_the_terminal(tree, in_process):
    """Control characters in a file's name and text are not written to the terminal."""
    tree({"a\x1b[31m.py": "x = '\x1b]0;title\x07\n"})
    for output_format in ("full", "concise", "json"):
        outcome = in_process("lint", ".", "--output-format", output_format, analysis=nothing)
        assert "\x1b" not in outcome.out


def test_name_that_is_no_unicode(tree, process):
    """A file name that is no valid text is shown escaped, and does not end the run."""
    root = tree({})
    try:
        (root / "a\udcff.py").write_text("def f(:\n")
    except OSError:
        pytest.skip("this file system refuses such names")
    outcome = process("lint", ".", "--output-format", "concise", cwd=root)
    assert outcome.exit_code == 1
    assert "SPG903" in outcome.out


def test_calls_of_builtins_with_too_few_arguments(tree, process):
    """Calls that raise as soon as they run are read like any others, with arguments behind stars or none at all."""
    names = (
        "any",
        "all",
        "sum",
        "min",
        "sorted",
        "isinstance",
        "getattr",
        "setattr",
        "divmod",
        "range",
        "zip",
    )
    body = "".join(
        f"    if {name}() or {name}(*x) or {name}(**x):\n        dist.barrier()\n" for name in names
    )
    root = tree({"a.py": "import torch.distributed as dist\n\ndef f(x):\n" + body})
    outcome = process("lint", "a.py", "--output-format", "json", cwd=root)
    assert (outcome.err, outcome.exit_code, reports(outcome)) == ("", 0, [])
