"""Functions that are only ever handed to a function that runs them on one rank are read where it calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.rules.marked import Reports, in_files

RUNNING = """
import torch.distributed as dist


def on_main(function):
    def wrapped(*args):
        if is_main_process():
            return function(*args)
        return None

    return wrapped


def run_on_main(function, args=()):
    on_main(function)(*args)
    dist.barrier()


def run_first(function, args=()):
    if dist.get_rank() == 0:
        function(*args)
    dist.barrier()
    if dist.get_rank() != 0:
        function(*args)


def is_main_process():
    return dist.get_rank() == 0
"""
PREPARING = """
import os

import torch.distributed as dist
import unknown


def prepare(folder):
    if not os.path.isfile(folder):
        fetch(folder)


def fetch(folder):
    if not os.path.isfile(folder + ".zip"):
        unknown.barrier()
"""


def _reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str) -> Reports:
    monkeypatch.chdir(tmp_path)
    for name, text in (("running.py", RUNNING), ("preparing.py", PREPARING), ("use.py", use)):
        (tmp_path / name).write_text(text)
    files = {"running.py": "", "preparing.py": "", "use.py": ""}
    return [(row, code) for name, row, code in in_files(files, "SPG304") if name == "preparing.py"]


ONE = ("run_on_main(prepare)", "run_on_main(\n    function=prepare, args=[1])", "on_main(prepare)(1)")
ALL = (
    "run_first(prepare)",
    "run_on_main(other, prepare)",
    "prepare(1)",
    "run_on_main(prepare)\nKEPT = [prepare]",
)


@pytest.mark.parametrize("call", ONE)
def test_only_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """No rank but one comes there, nor to what such a function alone calls."""
    use = f"from running import on_main, run_on_main\nfrom preparing import (\n    prepare,\n)\n\n{call}\n"
    assert _reported(tmp_path, monkeypatch, use) == []


@pytest.mark.parametrize("call", ALL)
def test_also_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Handed to what runs it on every rank, called, or kept: ranks may part in it."""
    use = f"from running import run_first, run_on_main\nfrom preparing import prepare\n\n{call}\n"
    assert _reported(tmp_path, monkeypatch, use) != []
