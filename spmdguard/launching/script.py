"""Run a user's script in this interpreter as ``python script.py`` would: ``__main__``, ``sys.argv``, ``sys.path``."""

from __future__ import annotations

import io
import os
import runpy
import sys
import types
from collections.abc import Sequence
from pathlib import Path


def run_script(path: str, argv: Sequence[str]) -> None:
    """Run a file; its exceptions leave unchanged.

    The module stays ``__main__`` afterwards, for threads, ``atexit`` functions and pickles that name it.
    """
    script = Path(path)
    sys.argv = [path, *argv]
    if script.is_dir() or script.suffix in (".zip", ".pyz", ".pyc"):
        runpy.run_path(path, run_name="__main__")
        return
    with io.open_code(str(script.resolve())) as file:
        code = compile(file.read(), path, "exec")
    sys.path[0] = str(script.resolve().parent)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=os.fspath(path), __cached__=None, __spec__=None, __package__=None)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)  # the program that the user asked to run


def run_module(name: str, argv: Sequence[str]) -> None:
    """Run a module, as ``python -m name`` would; its exceptions leave unchanged."""
    sys.argv = [name, *argv]
    sys.path[0] = str(Path.cwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)
