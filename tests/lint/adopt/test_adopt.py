"""`spmdguard adopt` on training scripts of different style: guarded, clean, and they still run."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest
from spmdguard_lint.adopt.command import adopt_command

pytestmark = pytest.mark.once

SCRIPTS = Path(__file__).parent / "scripts"
STYLES = {
    "functions": ("functions.py",),
    "trainer": ("trainer/main.py", "trainer/trainer.py"),
    "module_level": ("module_level.py",),
    "spawned": ("spawned.py",),
    "prepared": ("prepared.py",),
}
EXPECTED = {
    "functions": ("if stop_reason():", "@run()", "@rank_local", "if sync_should_stop():"),
    "trainer": ("if stop_reason():", "@run()", "@rank_local", "@collective", "if sync_should_stop():"),
    "module_level": ("raise_if_deferred_error()", 'with deferring("torch.save"):', "if sync_should_stop():"),
    "spawned": ("if stop_reason():", "@run()", "@rank_local", "if sync_should_stop():"),
    "prepared": ("if stop_reason():", "@run()", "@rank_local", "if sync_should_stop():"),
}
TIMEOUT_S = 150


@pytest.fixture
def adopted(tmp_path, monkeypatch, capsys):
    """Copy a style's files to the working directory and adopt them there."""

    def write(style: str) -> list[Path]:
        monkeypatch.chdir(tmp_path)
        names = [Path(name).name for name in STYLES[style]]
        for name in STYLES[style]:
            shutil.copy(SCRIPTS / name, tmp_path)
        assert adopt_command(["--isolated", "--write", *names]) == 0, capsys.readouterr().err
        return [tmp_path / name for name in names]

    return write


def comments(path: Path) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("style", STYLES)
def test_adopted_scripts_are_guarded_and_clean(style, adopted, capsys):
    """The script has the guards of its style and no finding; no comment is lost; a second time changes nothing."""
    files = adopted(style)
    text = "".join(path.read_text() for path in files)
    assert [part for part in EXPECTED[style] if part not in text] == []
    for path, name in zip(files, STYLES[style], strict=True):
        compile(path.read_text(), str(path), "exec")
        assert comments(path) == comments(SCRIPTS / name)
    capsys.readouterr()
    assert adopt_command(["--isolated", *map(str, files)]) == 0
    assert capsys.readouterr().out == ""


TUTORIAL = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def upload(step, loss):
    if step == 3:
        raise OSError("metrics server is down")
    print(step, loss)


def main(model, optimizer, batches):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(model)
    for step, batch in enumerate(batches):
        loss = model(batch)
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            upload(step, loss)
        if dist.get_rank() == 1 and loss.item() < 0.05:
            break


main()
"""


def test_an_exit_of_the_script_becomes_the_agreement(tmp_path, capsys):
    """A local exit is agreed on rather than followed by a second agreement; one rank's own work is `@rank_local`."""
    script = tmp_path / "a.py"
    script.write_text(TUTORIAL)
    assert adopt_command(["--isolated", "--write", str(script)]) == 0, capsys.readouterr().err
    text = script.read_text()
    assert text.count("sync_should_stop(") == 1
    assert "if sync_should_stop(dist.get_rank() == 1 and loss.item() < 0.05):\n            break\n" in text
    assert "@rank_local\ndef upload(step, loss):" in text
    assert "@run()\ndef main(" in text


def test_without_write_nothing_is_changed(tmp_path, capsys):
    """The default shows a difference that `git apply` takes, and says on standard error what was done and why."""
    script = tmp_path / "functions.py"
    shutil.copy(SCRIPTS / "functions.py", script)
    before = script.read_bytes()
    assert adopt_command(["--isolated", str(script)]) == 0
    shown = capsys.readouterr()
    assert script.read_bytes() == before
    assert "+@run()\n" in shown.out
    assert "`save_checkpoint` gets `@rank_local`: it may fail on one rank alone" in shown.err


def test_a_script_that_trains_nothing(tmp_path, capsys):
    """A file without a training loop is left as it is, and that is said."""
    script = tmp_path / "a.py"
    script.write_text("import torch.distributed as dist\n\nfor _ in range(3):\n    dist.barrier()\n")
    assert adopt_command(["--isolated", str(script)]) == 0
    assert capsys.readouterr() == ("", "no training loop was found: nothing to adopt\n")


def test_what_cannot_be_adopted_is_said(tmp_path, capsys):
    """A missing file, and one that is no Python, end with exit code 2 and a reason."""
    assert adopt_command(["--isolated", str(tmp_path / "missing.py")]) == 2
    assert "no such file" in capsys.readouterr().err
    script = tmp_path / "a.py"
    script.write_text("def f(:\n")
    assert adopt_command(["--isolated", str(script)]) == 2
    assert "cannot adopt" in capsys.readouterr().err


def run_adopted(files: list[Path], style: str, fail_at: str) -> subprocess.CompletedProcess[str]:
    """Start the adopted script with two ranks, with a main rank that cannot write its checkpoint at some point."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable]
    if style != "spawned":
        command += ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", port]
    command += [str(files[0]), *([port] if style == "spawned" else []), str(files[0].parent)]
    env = {**os.environ, "FAIL_AT": fail_at, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, env=env, cwd=files[0].parent, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


@pytest.mark.processes
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_a_failing_run_ends_with_its_cause(adopted):
    """The main rank cannot save in the second epoch: all ranks stop in the third, and the job ends with the error."""
    pytest.importorskip("torch")
    done = run_adopted(adopted("functions"), "functions", "1")
    assert done.returncode == 1
    assert "OSError: no space left" in done.stderr
    assert "epoch 1:" in done.stdout
    assert "epoch 2:" not in done.stdout


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.timeout(2 * TIMEOUT_S + 30)
@pytest.mark.parametrize("style", STYLES)
def test_every_style_still_runs(style, adopted):
    """Each adopted script runs to its end with two ranks, and ends with the cause where the main rank fails."""
    pytest.importorskip("torch")
    if style == "prepared":
        pytest.importorskip("accelerate")
    files = adopted(style)
    good = run_adopted(files, style, "never")
    assert good.returncode == 0, good.stderr
    assert good.stdout.count("epoch") + good.stdout.count("step") >= 3
    bad = run_adopted(files, style, "0")
    assert bad.returncode != 0
    assert "no space left" in bad.stderr
