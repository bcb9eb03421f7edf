"""`run` as a call and as a decorator, with and without its parentheses."""

from __future__ import annotations

import functools
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spmdguard


@pytest.fixture
def execute(monkeypatch) -> Callable[[str], dict[str, Any]]:
    """Run a text as a module of its own."""

    def run_text(text: str) -> dict[str, Any]:
        module = types.ModuleType("run_forms_example")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        names = vars(module)
        exec(compile(text, "run_forms_example.py", "exec"), names)
        return names

    return run_text


@pytest.mark.parametrize("above", ["@run", "@run\n@spmdguard.rank_local"])
def test_run_without_parentheses_is_refused_before_anything_runs(execute, above) -> None:
    """`@run` above a module's function raises at once, with the corrected line; the function is not run."""
    text = f"import spmdguard\nfrom spmdguard import run\nran = []\n{above}\ndef main():\n    ran.append(1)\n"
    with pytest.raises(TypeError, match=r"`@run` above `main` .* write `@run\(\)`, with parentheses"):
        execute(text)
    assert sys.modules["run_forms_example"].ran == []


@pytest.mark.parametrize(
    "form",
    [
        "def main():\n    return 3\nresult = run(main)\n",
        "@run()\ndef main():\n    return 3\nresult = main()\n",
        "result = run(lambda: 3)\n",
        "import functools\ndef main(n):\n    return n\nresult = run(functools.partial(main, 3))\n",
        "def outer():\n    def main():\n        return 3\n    return run(main)\nresult = outer()\n",
        "import functools\ndef same(f):\n    @functools.wraps(f)\n    def inner():\n        return f()\n"
        "    return inner\n@same\ndef main():\n    return 3\nresult = run(main)\n",
    ],
)
def test_the_documented_forms_run(execute, form) -> None:
    """A call with a function of any kind runs it and gives its result, as does the decorated function."""
    assert execute("from spmdguard import run\n" + form)["result"] == 3


def test_a_function_sent_by_value_is_run() -> None:
    """A function whose globals are not its module's, as when it came from another process, is no decoration."""
    code = compile("3", "sent.py", "eval")
    sent = types.FunctionType(code, {}, "sent")
    sent.__module__ = __name__
    assert spmdguard.run(sent) == 3
    assert spmdguard.run(functools.partial(sent)) == 3


FAILS = """
@spmdguard.run()
def decorated():
    begin()
    raise ValueError("x is bad")

def inside():
    with spmdguard.run():
        begin()
        raise ValueError("x is bad")

{"decorated": decorated, "inside": inside}[sys.argv[1]]()
"""
ALONE = """
import sys
import spmdguard
def begin(): pass
"""
GROUP = """
import os, sys
import torch.distributed
import spmdguard
def begin():
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    torch.distributed.init_process_group("gloo")
"""
WATCH = f"{ALONE}spmdguard.start_watch()\n"
OWN_HOOK = (
    f"{ALONE}sys.excepthook = lambda kind, exc, found: print('hook', kind.__name__, found is not None)\n"
)


def run_failing(folder: Path, form: str, before: str) -> tuple[str, str]:
    """Stdout and stderr of a program that fails inside a run."""
    (folder / "train.py").write_text(before + FAILS)
    command = [sys.executable, "train.py", form]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout, done.stderr


@pytest.mark.processes
@pytest.mark.parametrize("form", ["decorated", "inside"])
@pytest.mark.parametrize("before", [ALONE, GROUP, WATCH], ids=["alone", "group", "watch"])
def test_an_error_is_shown_once(tmp_path: Path, form: str, before: str) -> None:
    """The traceback stands once on stderr, from the program's first frame on; the last line says what it was."""
    if before == GROUP:
        pytest.importorskip("torch")
    err = run_failing(tmp_path, form, before)[1]
    assert err.count("Traceback (most recent call last)") == 1, err
    assert "lifecycle.py" not in err
    assert "spmdguard: rank 0 ends with the error above: ValueError: x is bad" in err.splitlines()[-1], err


@pytest.mark.processes
def test_a_programs_own_hook_still_hears_of_the_error(tmp_path: Path) -> None:
    """A hook that may do more than show the error is called with all of it."""
    assert run_failing(tmp_path, "decorated", OWN_HOOK)[0] == "hook ValueError True\n"
