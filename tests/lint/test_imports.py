"""Every module of the linter can be the first one that is imported: no cycle works by luck of the order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import spmdguard_lint

ROOT = Path(spmdguard_lint.__file__).parent
# In a fresh interpreter: import each module with nothing of the linter loaded before it.
PROGRAM = """
import importlib, json, sys
failed = {}
for name in json.loads(sys.argv[1]):
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == sys.argv[2]]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
print(json.dumps(failed))
"""


def failing(names: list[str], package: str, path: Path) -> dict[str, str]:
    """Which of the modules of a package cannot be imported first, and why."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(names), package]
    done = subprocess.run(command, capture_output=True, text=True, cwd=path, timeout=240, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.once
def test_every_module_can_be_imported_first():
    """Importing any one module of the linter, with none loaded before, works."""
    files = sorted(ROOT.rglob("*.py"))
    names = [".".join(path.relative_to(ROOT.parent).with_suffix("").parts) for path in files]
    names = [name.removesuffix(".__init__") for name in names]
    assert len(names) > 100
    assert failing(names, "spmdguard_lint", ROOT.parent) == {}


def test_check_of_first_imports_can_fail(tmp_path):
    """The check finds a cycle that only one order of imports gets over."""
    (tmp_path / "pair").mkdir()
    (tmp_path / "pair" / "__init__.py").touch()
    (tmp_path / "pair" / "one.py").write_text("from .two import second\nfirst = 1\n", encoding="utf-8")
    (tmp_path / "pair" / "two.py").write_text("second = 2\nfrom .one import first\n", encoding="utf-8")
    assert list(failing(["pair.one", "pair.two"], "pair", tmp_path)) == ["pair.one"]
