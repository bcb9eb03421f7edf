"""The public names: each exported once, loaded lazily, described for the group, seen by type checkers."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import spmdguard

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ast.parse(Path(spmdguard.__file__).read_text(encoding="utf-8"))
RESERVED = {
    "checkpoint": {"save_checkpoint", "latest_checkpoint"},
    "launch": {"handshake", "init_process_group"},
    "watch": {"start_watch"},
}
LABELS = ("Called by:", "Result:", "Raises on:")


def names_for_type_checkers() -> list[str]:
    """What the ``if TYPE_CHECKING`` block imports."""
    return [
        alias.asname or alias.name
        for node in SOURCE.body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]


def public_callables() -> list[tuple[str, Any]]:
    """Every public name that is called by users and is no exception, with public methods of classes."""
    found = []
    for name in spmdguard.__all__:
        value = getattr(spmdguard, name)
        if not callable(value) or (inspect.isclass(value) and issubclass(value, BaseException)):
            continue
        found.append((name, value))
    return found


def test_every_public_name_is_exported_exactly_once() -> None:
    """`__all__`, the lazy table and the imports for type checkers name the same things, each once."""
    lazy = [name for names in spmdguard._ROOMS.values() for name in names]
    for names in (spmdguard.__all__, lazy, names_for_type_checkers()):
        assert [name for name, count in Counter(names).items() if count > 1] == []
    public = set(spmdguard.__all__) - {"__version__"}
    assert (public, public) == (set(lazy), set(names_for_type_checkers()))


def test_rooms_export_what_is_public() -> None:
    """A name is in the `__all__` of the room that it is loaded from."""
    for room, names in spmdguard._ROOMS.items():
        module = importlib.import_module(f"spmdguard.{room}")
        assert set(names) <= set(module.__all__), room


@pytest.mark.parametrize("room", RESERVED)
def test_reserved_names_are_public_as_soon_as_they_exist(room: str) -> None:
    """Names of rooms that come later are exported when the room has them, and not before."""
    folder = ROOT / "spmdguard"
    if not ((folder / f"{room}.py").exists() or (folder / room / "__init__.py").exists()):
        assert set() == RESERVED[room] & set(spmdguard.__all__)
        return
    module = importlib.import_module(f"spmdguard.{room}")
    existing = {name for name in RESERVED[room] if hasattr(module, name)}
    assert existing == RESERVED[room] & set(spmdguard.__all__)


def test_unknown_names_are_attribute_errors() -> None:
    """A name that does not exist is an AttributeError, and `dir` lists those that do."""
    with pytest.raises(AttributeError, match="has no attribute 'rank_locale'"):
        spmdguard.rank_locale  # noqa: B018 - the access is the test
    assert set(spmdguard.__all__) <= set(dir(spmdguard))


@pytest.mark.parametrize(("name", "value"), public_callables())
def test_every_public_callable_says_what_it_means_for_the_group(name: str, value: Any) -> None:
    """The docstring has an `SPMD:` block: how it communicates, who calls it, its result, who gets errors."""
    lines = [line.strip() for line in (inspect.getdoc(value) or "").splitlines()]
    assert "SPMD:" in lines, name
    block = lines[lines.index("SPMD:") + 1 :]
    block = block[: block.index("")] if "" in block else block
    assert block[0].startswith(("Collective:", "Rank-local:")), name
    assert [label for label in LABELS if not any(line.startswith(label) for line in block)] == [], name


def test_types_are_what_users_are_promised() -> None:
    """mypy accepts the file of promised types, strictly."""
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "tests/typing/api.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_wrong_promises_are_found(tmp_path: Path) -> None:
    """The check of types can fail."""
    pytest.importorskip("mypy")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import spmdguard\nx: str = spmdguard.has_deferred_error()\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(wrong)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1
    assert "Incompatible types in assignment" in done.stdout
