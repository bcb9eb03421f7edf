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
from pathlib import Path


def find_missing(name: str, *, module: bool) -> str:
    """Why there is nothing to run under a name; empty where there is. Imports nothing of the user's."""
    if not module:
        return "" if Path(name).exists() else f"no such script: {name}"
    top = name.partition(".")[0]
    before = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        found = False
    finally:
        sys.path[:] = before
    return "" if found else f"no module named {top!r}"


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
