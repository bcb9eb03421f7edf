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
from spmdguard.launching.script import find_missing, prepare_module, prepare_script

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
    write(tmp_path, train="x = (")
    done = spmdguard("run", "train.py", cwd=tmp_path)
    assert re.findall(r'File "([^"]+)", line (\d+)', done.stderr) == [("train.py", "1")], done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.py"], "no such script: gone.py"),
        (["--nproc", "2", "gone.py"], "no such script: gone.py"),
        (["-m", "gone_by_now.train"], "no module named 'gone_by_now'"),
        (["-m", "project.gone"], "no module named 'project.gone'"),
        (["-m", "project"], "'project' is a package without a __main__ module; name a module of it"),
        (["-m", "project.train.py"], "no module named 'project.train.py'; 'project.train' is no package"),
        (["project"], "the folder project has no __main__.py; name the script in it"),
        (["--nproc", "x", "train.py"], "--nproc: a number, cpu, gpu or auto is needed, got 'x'"),
        (["--nproc", "0", "train.py"], "--nproc: at least one process is needed, got '0'"),
    ],
)
def test_what_cannot_be_started_is_refused_in_one_line(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    """A script, module or number of processes that is none ends with 2 and one line, before anything starts."""
    (tmp_path / "project").mkdir()
    write(tmp_path, train="print('started')")
    write(tmp_path / "project", __init__="raise SystemExit('imported')", train="print('started')")
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
if rank == 0 and "both" in sys.argv:
    raise KeyError("own")
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


DEFERS = """
import torch.distributed as dist
import spmdguard

@spmdguard.run()
def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        spmdguard.try_or_defer(int, "x")
    assert spmdguard.sync_should_stop()

main()
"""


def test_ranks_without_an_error_end_well_before_the_one_that_deferred_it(tmp_path: Path) -> None:
    """All left together: torchrun has no rank left to end, and its summary names one failure."""
    write(tmp_path, train=DEFERS)
    done = spmdguard("run", "--nproc", "2", "train.py", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "SIGTERM" not in done.stderr
    summary = done.stderr.partition("Failures:")[2]
    assert "<NO_OTHER_FAILURES>" in summary
    assert re.search(r"rank +: 0 ", summary), done.stderr


@pytest.mark.parametrize("slurm", [False, True])
def test_without_a_launcher_that_kills_the_peers_leave_too(tmp_path: Path, slurm: bool) -> None:
    """Under plain processes, and with SLURM's variables, rank 0 names rank 1's error and leaves with code 74."""
    write(tmp_path, train=TRAIN)
    names = {"PROCID": "RANK", "NTASKS": "2", "LOCALID": "RANK", "JOB_ID": "7"}
    variables = {f"SLURM_{name}": value for name, value in names.items()} if slurm else {}
    first, second = run_ranks(tmp_path, "fail", each=variables)
    assert (first.code, second.code) == (74, 1), first.err
    assert "the cause: rank 1 failed first: ValueError: bad shard" in first.err


def test_a_rank_with_an_error_of_its_own_is_no_victim(tmp_path: Path) -> None:
    """Where both fail, one is the first, and the other says so, but leaves with the code of its own error."""
    write(tmp_path, train=TRAIN)
    first, second = run_ranks(tmp_path, "fail", "both")
    assert (first.code, second.code) == (1, 1), first.err
    (later,) = [each.err for each in (first, second) if "failed too" in each.err]
    assert re.search(r"spmdguard: rank [01] failed too; the first cause: rank [01] failed first: ", later)
    assert "victim" not in first.err + second.err


def test_the_options_end_at_the_script() -> None:
    """What stands after the script belongs to it, also where it looks like our own options."""
    options = _parse(["--stall-limit", "5", "train.py", "--nproc", "8", "-m"])
    assert (options.stall_limit, options.nproc, options.module) == (5.0, None, False)
    assert options.arguments == ["--nproc", "8", "-m"]


@pytest.mark.parametrize(
    ("init", "name", "wrong"),
    [
        ("", "pkg.train", ""),
        ("", "pkg.gone", "no module named 'pkg.gone'"),
        ("__path__.append('elsewhere')", "pkg.gone", ""),
        (None, "pkg.train", ""),
        (None, "pkg", "'pkg' is a package without a __main__ module; name a module of it"),
        ("", "json.tool", ""),
        ("", "timeit", ""),
    ],
)
def test_a_module_is_looked_for_without_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, init: str | None, name: str, wrong: str
) -> None:
    """Packages, folders without `__init__`, and Python's own are followed; one that extends its path is believed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pkg").mkdir()
    write(tmp_path / "pkg", train="", **({} if init is None else {"__init__": init}))
    assert find_missing(name, module=True) == wrong
    assert "pkg" not in sys.modules


def test_options_of_the_script_are_never_taken_for_ours(tmp_path: Path) -> None:
    """Neither this command nor torchrun finds them ambiguous with its own, or short for them."""
    assert _parse(["train.py", "--n", "3"]).arguments == ["--n", "3"]
    write(tmp_path, train="import sys; print(sys.argv[1:])")
    done = spmdguard("run", "--nproc", "1", "train.py", "--nproc", "5", "--n", "--", "-m", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "['--nproc', '5', '--n', '--', '-m']\n"), done.stderr


def test_a_parser_of_options_has_the_last_word(tmp_path: Path) -> None:
    """A wrong option of the script shows what argparse says of it, and no traceback."""
    write(tmp_path, train="import argparse; argparse.ArgumentParser(prog='train').parse_args()")
    done = spmdguard("run", "train.py", "--wrong", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "usage: train [-h]",
        "train: error: unrecognized arguments: --wrong",
        "spmdguard: rank 0 failed",
        "SystemExit: 2",
    ]


@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan"])
def test_a_limit_that_is_none_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The stall limit must be a positive number; the message shows the value."""
    with pytest.raises(SystemExit):
        _parse([f"--stall-limit={value}", "train.py"])
    said = capsys.readouterr().err
    assert f"argument --stall-limit: a positive number of seconds is needed, got {value!r}" in said


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
