"""`spmdguard run` as users type it: the script runs as Python would run it, and the process ends with its code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spmdguard.cli import main
from spmdguard.launching.run_command import _parse
from spmdguard.launching.script import prepare_module, prepare_script

from .plain_ranks import run_ranks

pytestmark = pytest.mark.processes


def spmdguard(
    *argv: str, cwd: Path, timeout_s: float = 120.0, **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    }
    return subprocess.run(
        [sys.executable, "-m", "spmdguard", *argv],
        cwd=cwd,
        env={**kept, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


SHOW = """
import json, sys, pickle
import beside
class Thing: pass
print(json.dumps({
    "name": __name__, "argv": sys.argv, "file": __file__, "path": sys.path[0], "spec": repr(__spec__),
    "main": sys.modules["__main__"].Thing is Thing, "pickled": type(pickle.loads(pickle.dumps(Thing()))) is Thing,
    "beside": beside.WHO}))
"""


LEAVES_THINGS = """
import atexit, multiprocessing, sys, time
class Thing:
    def __del__(self): print("finalised", flush=True)
thing = Thing()
atexit.register(print, "at exit", flush=True)
child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,), daemon=True)
child.start()
print(child.pid, flush=True)
if "fail" in sys.argv:
    raise ValueError("bad shard")
"""


def test_a_script_sees_what_python_shows_it(tmp_path: Path) -> None:
    """`__name__`, `sys.argv`, `sys.path[0]`, pickling by `__main__`, modules beside it: as under `python script.py`."""
    folder = tmp_path / "project"
    folder.mkdir()
    write(folder, show=SHOW, beside="WHO = 'me'\n")
    under = spmdguard("run", "project/show.py", "--lr", "1", "--stall-limit", "x", cwd=tmp_path)
    alone = subprocess.run(
        [sys.executable, "project/show.py", "--lr", "1", "--stall-limit", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert under.returncode == 0, under.stderr
    assert json.loads(under.stdout) == json.loads(alone.stdout)
    assert under.stderr == ""


def test_a_module_is_run_by_name(tmp_path: Path) -> None:
    """`-m package.module` runs it as `python -m` does."""
    (tmp_path / "package").mkdir()
    write(tmp_path / "package", __init__="", train="import sys\nprint(__name__, __package__, sys.argv[1:])\n")
    done = spmdguard("run", "-m", "package.train", "a", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__ package ['a']\n"), done.stderr


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import sys; sys.exit(7)", 7, "SystemExit: 7"),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('no data')", 1, "no data"),
        ("def f():\n    raise OSError(28, 'disk full')\nf()\n", 1, "OSError: [Errno 28] disk full"),
        ("import os; os._exit(5)", 5, ""),
        ("x = (", 1, "SyntaxError"),
    ],
)
def test_the_exit_code_is_the_scripts(tmp_path: Path, text: str, code: int, said: str) -> None:
    """However a script ends, the process ends with the code that Python would give it."""
    write(tmp_path, train=text)
    done = spmdguard("run", "train.py", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "bug in spmdguard" not in done.stderr


@pytest.mark.parametrize(("fails", "lines"), [(True, ["at exit"]), (False, ["at exit", "finalised"])])
def test_a_script_that_fails_ends_without_finalisation(tmp_path: Path, fails: bool, lines: list[str]) -> None:
    """What the script registered with atexit runs; only a script that ends well is finalised, which takes long."""
    write(tmp_path, train=LEAVES_THINGS)
    done = spmdguard("run", "train.py", *["fail"][: int(fails)], cwd=tmp_path)
    said = done.stdout.splitlines()
    assert (done.returncode, said[1:]) == (int(fails), lines), done.stderr
    assert not Path(f"/proc/{said[0]}").exists()


def test_a_traceback_begins_in_the_script(tmp_path: Path) -> None:
    """The frames of this package are not shown to the user."""
    write(tmp_path, train="def f():\n    raise KeyError('a')\nf()\n")
    done = spmdguard("run", "train.py", cwd=tmp_path)
    frames = re.findall(r'File "([^"]+)", line (\d+)', done.stderr)
    assert frames == [("train.py", "3"), ("train.py", "2")], done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.py"], "no such script: gone.py"),
        (["--nproc", "2", "gone.py"], "no such script: gone.py"),
        (["-m", "gone_by_now.train"], "no module named 'gone_by_now'"),
        (["--nproc", "x", "train.py"], "--nproc: a number, cpu, gpu or auto is needed, got 'x'"),
        (["--nproc", "0", "train.py"], "--nproc: at least one process is needed, got '0'"),
    ],
)
def test_what_cannot_be_started_is_refused_in_one_line(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    """A script, module or number of processes that is none ends with 2 and one line, before anything starts."""
    write(tmp_path, train="print('started')")
    done = spmdguard("run", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"spmdguard run: error: {said}")


def test_without_a_script_only_the_script_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The script's own arguments are optional, and the message does not ask for them."""
    with pytest.raises(SystemExit):
        _parse([])
    assert capsys.readouterr().err.endswith("the following arguments are required: script\n")


@pytest.mark.parametrize("arguments", [["preflight"], ["demo"], ["run", "--nproc", "2", __file__]])
def test_a_command_that_needs_torch_says_so(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where torch is not installed the command says what to install, and ends with 2."""
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(arguments) == 2
    expected = f"spmdguard {arguments[0]}: error: needs torch: pip install 'spmdguard[torch]'\n"
    assert capsys.readouterr().err == expected


TRAIN = """
import sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.ones(2)
for step in range(5):
    dist.all_reduce(total)
if rank == 1 and "fail" in sys.argv:
    raise ValueError("bad shard")
if rank == 1 and "leave" in sys.argv:
    sys.exit(0)
dist.all_reduce(total)
dist.destroy_process_group()
print("done", rank)
"""


def test_torchrun_is_started_for_n_processes(tmp_path: Path) -> None:
    """`--nproc 2` starts torchrun; the failing rank is the root cause there too, and the other says it."""
    write(tmp_path, train=TRAIN)
    done = spmdguard("run", "--nproc", "2", "train.py", "fail", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert re.search(
        r"the cause: rank 1 failed first: ValueError: bad shard \(at train.py:\d+ in <module>\)", done.stderr
    )
    root = done.stderr.partition("Root Cause (first observed failure):")[2]
    assert re.search(r"rank +: 1 ", root), done.stderr


@pytest.mark.parametrize("slurm", [False, True])
def test_without_a_launcher_that_kills_the_peers_leave_too(tmp_path: Path, slurm: bool) -> None:
    """Under plain processes, and with SLURM's variables, rank 0 names rank 1's error and leaves with code 74."""
    write(tmp_path, train=TRAIN)
    names = {"PROCID": "RANK", "NTASKS": "2", "LOCALID": "RANK", "JOB_ID": "7"}
    variables = {f"SLURM_{name}": value for name, value in names.items()} if slurm else {}
    first, second = run_ranks(tmp_path, "fail", each=variables)
    assert (first.code, second.code) == (74, 1), first.err
    assert "the cause: rank 1 failed first: ValueError: bad shard" in first.err


def test_the_options_end_at_the_script() -> None:
    """What stands after the script belongs to it, also where it looks like our own options."""
    options = _parse(["--stall-limit", "5", "train.py", "--nproc", "8", "-m"])
    assert (options.stall_limit, options.nproc, options.module) == (5.0, None, False)
    assert options.arguments == ["--nproc", "8", "-m"]


@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan"])
def test_a_limit_that_is_none_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The stall limit must be a positive number; the message shows the value."""
    with pytest.raises(SystemExit):
        _parse([f"--stall-limit={value}", "train.py"])
    assert "stall-limit" in capsys.readouterr().err


def test_preparing_keeps_the_script_as_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks before the script runs already sees it as `__main__` and in `sys.argv`."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    write(tmp_path, train="raise SystemExit(__file__)\n")
    run = prepare_script(str(tmp_path / "train.py"), ["a"])
    assert (sys.modules["__main__"].__file__, sys.argv[1:]) == (str(tmp_path / "train.py"), ["a"])
    with pytest.raises(SystemExit, match=r"train\.py"):
        run()
    prepare_module("json.tool", [])
    assert str(sys.modules["__main__"].__file__).endswith("tool.py")
