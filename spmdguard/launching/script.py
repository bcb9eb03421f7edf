"""A user's script in this interpreter, as ``python script.py`` would run it.

Preparing sets ``__main__``, ``sys.argv`` and ``sys.path``, so that who looks sees the script; running comes after.
"""

from __future__ import annotations

import importlib.util
import io
import os
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path


def find_missing(name: str, *, module: bool) -> str:
    """Why there is nothing to run under a name; empty where there is. Imports nothing of the user's."""
    if not module:
        return _find_missing_script(Path(name))
    before = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))
    try:
        return _find_missing_module(name)
    finally:
        sys.path[:] = before


def _find_missing_script(path: Path) -> str:
    if path.is_dir() and not any((path / name).exists() for name in ("__main__.py", "__main__.pyc")):
        return f"the folder {path} has no __main__.py; name the script in it"
    return "" if path.exists() else f"no such script: {path}"


def _find_missing_module(name: str) -> str:
    """Follow a dotted name from package to package, and a package to its ``__main__``."""
    top, *rest = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    known = top
    for part in [*rest, "__main__"]:
        if spec is None:
            return f"no module named {known!r}"
        if spec.submodule_search_locations is None:
            return "" if part == "__main__" else f"no module named '{known}.{part}'; {known!r} is no package"
        if _extends_its_path(spec):
            return ""
        known = f"{known}.{part}"
        spec = PathFinder.find_spec(known, list(spec.submodule_search_locations))
    return "" if spec is not None else f"{name!r} is a package without a __main__ module; name a module of it"


def _extends_its_path(spec: ModuleSpec) -> bool:
    """Whether a package adds places to look for its modules when it is imported, so that nobody can tell before."""
    try:
        return spec.origin is not None and "__path__" in Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return spec.origin not in (None, "namespace")


def prepare_script(path: str, argv: Sequence[str]) -> Callable[[], None]:
    """A file; what is returned runs it, and its exceptions leave unchanged.

    The module stays ``__main__`` afterwards, for threads, ``atexit`` functions and pickles that name it.
    """
    script = Path(path)
    sys.argv = [path, *argv]
    module = _become_main(path)
    if script.is_dir() or script.suffix in (".zip", ".pyz", ".pyc"):
        return lambda: _run_path(path)
    sys.path[0] = str(script.resolve().parent)

    def run() -> None:
        with io.open_code(str(script.resolve())) as file:
            code = compile(file.read(), path, "exec")
        exec(code, module.__dict__)  # the program that the user asked to run

    return run


def prepare_module(name: str, argv: Sequence[str]) -> Callable[[], None]:
    """A module, as ``python -m name`` would run it; what is returned runs it."""
    sys.path[0] = str(Path.cwd())
    spec = importlib.util.find_spec(name)
    origin = (spec.origin if spec is not None else None) or name
    sys.argv = [origin, *argv]
    _become_main(origin)
    return lambda: _run_module(name)


def _become_main(path: str) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=os.path.abspath(path),  # noqa: PTH100 - as Python: links are not followed
        __cached__=None,
        __spec__=None,
        __package__=None,
    )
    sys.modules["__main__"] = module
    return module


def _run_path(path: str) -> None:
    runpy.run_path(path, run_name="__main__")


def _run_module(name: str) -> None:
    runpy.run_module(name, run_name="__main__", alter_sys=True)
