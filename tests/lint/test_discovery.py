"""Which files a run looks at, and how reports name them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from spmdguard_lint.source.discovery import Exclusion, NoSuchPath, discover, matches_glob


def names(*roots: str, patterns: tuple[str, ...] | None = None, **options) -> list[str]:
    base = Path.cwd()
    exclusion = Exclusion(base, **options) if patterns is None else Exclusion(base, patterns, **options)
    return [file.filename for file in discover(roots or (".",), exclusion)]


def test_finds_python_files_below_folders_in_order(tree):
    """All `*.py` files below a folder, sorted by name, and no others."""
    tree({"b.py": "", "a/z.py": "", "a/b/c.py": "", "a/data.txt": "", "a/stub.pyi": "", "c.pyc": ""})
    assert names() == ["a/b/c.py", "a/z.py", "b.py"]


def test_order_does_not_depend_on_the_order_of_the_roots(tree):
    """The same files in the same order, whatever the order of the roots."""
    tree({"b/x.py": "", "a/x.py": ""})
    assert names("a", "b") == names("b", "a") == ["a/x.py", "b/x.py"]


def test_each_file_once(tree):
    """Roots that overlap, and links to a file already found, give each file once."""
    root = tree({"a/x.py": ""})
    (root / "a/link.py").symlink_to(root / "a/x.py")
    assert len(names("a", "a/x.py", ".", "a/link.py")) == 1


def test_names_are_relative_to_the_working_directory(tree):
    """A file below the working directory is named relative to it, however the root was written."""
    root = tree({"a/x.py": ""})
    assert names(str(root)) == names("./a") == names("a/../a") == ["a/x.py"]


def test_names_outside_the_working_directory_stay_as_given(tree, monkeypatch):
    """A file elsewhere keeps the root's own form."""
    root = tree({"a/x.py": "", "b/y.py": ""})
    monkeypatch.chdir(root / "a")
    assert names("../b") == ["../b/y.py"]
    assert names(str(root / "b")) == [str(root / "b/y.py")]


def test_a_file_root_is_read_whatever_its_name(tree):
    """A file that the user names is read: a script without suffix too."""
    tree({"train": "#!/usr/bin/env python3\n", "build/gen.py": ""})
    assert names("train", "build/gen.py") == ["build/gen.py", "train"]


def test_missing_root_is_an_error(tree):
    """A root that does not exist is an error that names it."""
    tree({})
    with pytest.raises(NoSuchPath, match="nowhere"):
        names("nowhere.py")


def test_default_excludes(tree):
    """Environments, caches and build output below a root are left out; a root itself never is."""
    tree({
        ".venv/x.py": "", "venv/x.py": "", ".git/x.py": "", "build/x.py": "",
        "node_modules/x.py": "", "__pycache__/x.py": "", "a/site-packages/x.py": "",
        "env/pyvenv.cfg": "", "env/x.py": "",
        "kept.py": "",
    })  # fmt: skip
    assert names() == ["kept.py"]
    assert names("venv") == ["venv/x.py"]


def test_a_package_called_dist_is_source(tree):
    """A folder called `dist` or `build` that is a Python package is looked at."""
    tree({"pkg/__init__.py": "", "pkg/dist/__init__.py": "", "pkg/dist/comm.py": "", "dist/old.py": ""})
    assert names() == ["pkg/__init__.py", "pkg/dist/__init__.py", "pkg/dist/comm.py"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("gen", ["a/b/keep.py", "a/x_pb2.py", "top.py"]),
        ("*_pb2.py", ["a/b/keep.py", "a/gen/y.py", "top.py"]),
        ("a/*.py", ["a/b/keep.py", "a/gen/y.py", "top.py"]),
        ("a/**", ["top.py"]),
        ("**/gen/*.py", ["a/b/keep.py", "a/x_pb2.py", "top.py"]),
        ("a/b/", ["a/gen/y.py", "a/x_pb2.py", "top.py"]),
        ("./top.py", ["a/b/keep.py", "a/gen/y.py", "a/x_pb2.py"]),
        ("[st]op.py", ["a/b/keep.py", "a/gen/y.py", "a/x_pb2.py"]),
        ("[!t]op.py", ["a/b/keep.py", "a/gen/y.py", "a/x_pb2.py", "top.py"]),
        ("a", ["top.py"]),
        ("op.py", ["a/b/keep.py", "a/gen/y.py", "a/x_pb2.py", "top.py"]),
    ],
)
def test_exclude_patterns(pattern, expected, tree):
    """A pattern fits a name, or a path relative to the settings' folder."""
    tree({"a/gen/y.py": "", "a/b/keep.py": "", "a/x_pb2.py": "", "top.py": ""})
    assert names(patterns=(pattern,)) == expected


def test_force_exclude_applies_to_file_roots(tree):
    """With `force`, a file named by the user is left out where it, or a folder above it, is excluded."""
    tree({"build/deep/gen.py": "", "a.py": ""})
    assert names("build/deep/gen.py", "a.py", force=True) == ["a.py"]
    assert names("build/deep/gen.py", "a.py") == ["a.py", "build/deep/gen.py"]


def test_gitignore_nested_and_negated(tree):
    """Nested `.gitignore` files override outer ones; a later pattern overrides an earlier one."""
    tree({
        ".gitignore": "*_gen.py\n/out/\n\n# comment\n", "out/x.py": "", "a/out/x.py": "", "a_gen.py": "",
        "a/.gitignore": "!keep_gen.py\nskip.py\n", "a/keep_gen.py": "", "a/skip.py": "", "skip.py": "",
    })  # fmt: skip
    assert names() == ["a/keep_gen.py", "a/out/x.py", "skip.py"]
    assert len(names(respect_gitignore=False)) == 6


def test_gitignore_above_the_root_counts_in_a_repository(tree):
    """In a git repository the files above the root count; elsewhere they do not."""
    root = tree({".gitignore": "gen.py\n", "a/gen.py": "", "a/x.py": ""})
    assert names("a") == ["a/gen.py", "a/x.py"]
    (root / ".git").mkdir()
    assert names("a") == ["a/x.py"]


def test_an_ignored_root_is_read(tree):
    """A folder that the user names is read although the repository ignores it."""
    tree({".git/HEAD": "", ".gitignore": "third/\n", "third/pkg/x.py": ""})
    assert names("third") == names("third/pkg") == ["third/pkg/x.py"]
    assert names() == []


def test_gitignore_with_lines_that_are_no_patterns(tree):
    """Lines that git cannot use count for nothing; the others still do."""
    tree({".gitignore": b"!\n\xff\xfe\nx.py\n", "x.py": "", "y.py": ""})
    assert names() == ["y.py"]


def test_same_verdicts_as_git(tree):
    """On a tree with many kinds of patterns, the files found are those that git would not ignore."""
    root = tree({
        ".gitignore": "*.py\n!*.keep.py\n/lib\nlogs/**/debug.py\n**/tmp\nfoo/*\n!foo/bar.py\n\\#hash.py\n",
        **dict.fromkeys((
            "a.py", "a.keep.py", "lib/b.keep.py", "x/lib/b.keep.py", "logs/1/2/debug.keep.py",
            "x/tmp/c.keep.py", "foo/bar.py", "foo/baz.keep.py", "#hash.py",
        ), ""),
    })  # fmt: skip
    subprocess.run(["git", "init", "-q"], check=True, cwd=root, timeout=30)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True, cwd=root, timeout=30,
    )  # fmt: skip
    expected = sorted(name for name in listed.stdout.splitlines() if name.endswith(".py"))
    assert expected
    assert names() == expected


def test_symlink_loop_ends(tree):
    """Folders that are links are not entered, so a loop of them ends."""
    root = tree({"a/x.py": ""})
    (root / "a/loop").symlink_to(root, target_is_directory=True)
    (root / "self.py").symlink_to(root / "self.py")
    assert names() == ["a/x.py"]


def test_links_to_files_are_followed(tree):
    """A link to a file outside is read; one that dangles is no file."""
    root = tree({"src/x.py": "", "real/data.txt": ""})
    (root / "src/y.py").symlink_to(root / "real/data.txt")
    (root / "src/.#x.py").symlink_to("someone@host.123")
    assert names("src") == ["src/x.py", "src/y.py"]


def test_pipes_are_no_source(tree):
    """A named pipe below a folder does not make the run wait."""
    root = tree({"x.py": ""})
    os.mkfifo(root / "pipe.py")
    assert names() == ["x.py"]


@pytest.mark.parametrize(
    ("glob", "filename", "expected"),
    [
        ("tests/**", "tests/a/b.py", True),
        ("tests/*", "tests/a/b.py", False),
        ("test_*.py", "a/test_b.py", True),
        ("**/b.py", "b.py", True),
        ("a/b.py", "x/a/b.py", False),
        ("a?.py", "ab.py", True),
        ("a.py", "aXpy", False),
    ],
)
def test_globs(glob, filename, expected):
    """`**` crosses folders, `*` and `?` do not, and a dot is a dot."""
    assert matches_glob(glob, filename, Path.cwd()) is expected
