"""Find the Python files below the given paths: sorted, each once, without what is ignored or excluded.

Terminology: a *root* is a path given by the user. A file given as a root is always read, whatever its name;
``exclude`` and ``.gitignore`` decide only about what lies below a directory root (and about file roots with
``force_exclude``). Directories that are symbolic links are not entered, so a loop of links ends; named pipes,
sockets and dangling links are no source files.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spmdguard_lint.source.gitignore import IgnoreStack

DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pytest_cache",
    ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__", "__pypackages__", "_build",
    "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip
# A Python package may bear one of these names (``mmengine.dist``); then it is source like any other.
_MAY_BE_A_PACKAGE = frozenset({"_build", "build", "dist", "venv"})


class NoSuchPath(Exception):
    """A path given by the user does not exist."""


@dataclass(frozen=True)
class FoundFile:
    """A file to lint, and how reports show it."""

    path: Path
    filename: str


@dataclass(frozen=True)
class Exclusion:
    """What not to enter below a directory root; patterns match a name, or a path relative to ``base``."""

    base: Path
    patterns: tuple[str, ...] = DEFAULT_EXCLUDE
    respect_gitignore: bool = True
    force: bool = False


def discover(roots: Sequence[str | Path], exclusion: Exclusion) -> list[FoundFile]:
    """All files to lint, in the order of their displayed names; ``NoSuchPath`` for a root that is none."""
    here = Path.cwd()
    found: dict[str, FoundFile] = {}
    for root in roots:
        if not os.path.exists(root):
            raise NoSuchPath(str(root))
        for path in _below(Path(root), exclusion):
            found.setdefault(os.path.realpath(path), FoundFile(path, display_name(path, here)))
    return sorted(found.values(), key=lambda file: file.filename)


def display_name(path: Path | str, cwd: Path) -> str:
    """The path as reports show it: relative to the working directory where it lies below that."""
    text = os.path.normpath(path)
    if os.path.isabs(text):
        base = str(cwd).rstrip(os.sep) + os.sep
        if text.startswith(base):
            return text[len(base) :]
    return text


def _below(root: Path, exclusion: Exclusion) -> Iterator[Path]:
    if not root.is_dir():
        if not (exclusion.force and _file_root_excluded(root, exclusion)):
            yield root
        return
    ignores = None
    if exclusion.respect_gitignore:
        from spmdguard_lint.source.gitignore import IgnoreStack

        ignores = IgnoreStack.at(root)
    yield from _walk(str(root), exclusion, ignores)


def _walk(folder: str, exclusion: Exclusion, ignores: IgnoreStack | None) -> Iterator[Path]:
    pending = [(folder, ignores)]
    while pending:
        folder, ignores = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            yield Path(folder)  # reading it will fail too, and say why
            continue
        if ignores is not None and any(entry.name == ".gitignore" for entry in entries):
            ignores = ignores.entered(folder)
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not (entry.name.endswith(".py") and _is_regular(entry)):
                continue
            if is_excluded(entry.path, entry.name, exclusion, is_folder=is_folder):
                continue
            if ignores is not None and ignores.ignores(entry.path, is_folder=is_folder):
                continue
            if is_folder:
                pending.append((entry.path, ignores))
            else:
                yield Path(entry.path)


def _is_regular(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISREG(entry.stat().st_mode)
    except OSError:
        return False


def is_excluded(path: str, name: str, exclusion: Exclusion, *, is_folder: bool) -> bool:
    """Whether ``exclude`` keeps the entry ``path``, called ``name``, out."""
    plain, matcher = _compiled(exclusion.patterns)
    if name in plain:
        may_be_package = is_folder and name in _MAY_BE_A_PACKAGE
        return not (may_be_package and os.path.exists(os.path.join(path, "__init__.py")))
    if is_folder and os.path.exists(os.path.join(path, "pyvenv.cfg")):
        return True
    return matcher is not None and _matches(matcher, path, name, exclusion.base)


def _file_root_excluded(path: Path, exclusion: Exclusion) -> bool:
    """Whether a file given as a root is excluded, itself or by a folder between it and ``base``."""
    absolute = Path(os.path.abspath(path))
    if is_excluded(str(absolute), absolute.name, exclusion, is_folder=False):
        return True
    for parent in absolute.parents:
        if not parent.is_relative_to(exclusion.base) or parent == exclusion.base:
            break
        if is_excluded(str(parent), parent.name, exclusion, is_folder=True):
            return True
    return False


@lru_cache(maxsize=8)
def _compiled(patterns: tuple[str, ...]) -> tuple[frozenset[str], re.Pattern[str] | None]:
    """Names that need no pattern, and one pattern for all others."""
    plain = frozenset(p for p in patterns if not any(c in p for c in "*?[/"))
    rest = [p.rstrip("/") for p in patterns if p not in plain]
    return plain, re.compile("|".join(f"(?:{glob_pattern(p)})" for p in rest)) if rest else None


@lru_cache(maxsize=256)
def glob_pattern(glob: str) -> str:
    """A regular expression for ``glob``: ``**`` crosses folders, ``*``, ``?`` and ``[...]`` do not."""
    return "".join(map(_translated, re.split(_WILD, glob.removeprefix("./")))) + r"\Z"


_WILD = r"(\*\*/|/\*\*$|\*\*|\*|\?|\[!?\]?[^\]/]*\])"
_MEANING = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _translated(part: str) -> str:
    if part.startswith("[") and part.endswith("]") and len(part) > 2:
        inner = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return _MEANING.get(part) or re.escape(part)


def _matches(matcher: re.Pattern[str], path: str, name: str, base: Path) -> bool:
    if matcher.match(name):
        return True
    relative = os.path.relpath(os.path.abspath(path), base).replace(os.sep, "/")
    return matcher.match(relative) is not None


def matches_glob(glob: str, filename: str, base: Path) -> bool:
    """Whether ``glob`` fits the file's name, or its path relative to ``base``."""
    return _matches(re.compile(glob_pattern(glob)), filename, os.path.basename(filename), base)
