"""Results of earlier runs: found again exactly where nothing has changed, and harmless where they are damaged."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spmdguard_lint import engine
from spmdguard_lint.cache.encoding import decode, encode
from spmdguard_lint.cache.keys import Input, run_key
from spmdguard_lint.cache.store import FOLDER, MAX_ENTRIES, Cache, Stored
from spmdguard_lint.config import Config
from spmdguard_lint.model import Edit, Finding, Fix, Location, Site, TrailStep

SITE = Site("a.py", Location(1, 2), Location(3, 4))
FINDING = Finding(
    "SPG101",
    "collective-in-rank-branch",
    "error",
    "likely",
    "a message with \u2192 and \udc80",
    "help",
    SITE,
    (TrailStep(SITE, "because"),),
    ("one",),
    ("other", "more"),
    Fix("safe", "mend", (Edit("text", SITE),)),
    (("mark", SITE),),
)
PARTS = {
    "comm.py": [
        "import torch.distributed as dist\ndef sync(x):\n    dist.all_reduce(x)\n",
        "import torch.distributed as dist\ndef sync(x):\n    return x\n",
        "def sync(x):\n    return x\n",
        "def sync(x:\n",
    ],
    "train.py": [
        "from comm import sync\nimport torch.distributed as dist\n"
        "def step(x):\n    if dist.get_rank() == 0:\n        sync(x)\n",
        "from comm import sync\nimport torch.distributed as dist\ndef step(x):\n    sync(x)\n",
        "from pkg.comm import sync\nfrom time import time\ndef step(x):\n    if time() > 1:\n        sync(x)\n",
    ],
    "pkg/comm.py": [
        "from comm import sync\n",
        "import torch.distributed as dist\ndef sync(x):\n    dist.barrier()\n",
    ],
    "pkg/__init__.py": ["", "from .comm import sync\n"],
    "pyproject.toml": ["", "[tool.spmdguard.lint]\nuniform-functions = ['time.time']\n"],
}
EDITS = st.lists(
    st.sampled_from(sorted(PARTS)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from([None, *PARTS[name]]))
    ),
    max_size=4,
)


def shown(result: engine.LintResult) -> list[object]:
    """What a user sees of a result."""
    return [result.findings, result.num_files, result.num_suppressed, dict(result.num_advice)]


def never(*_: object) -> object:
    raise AssertionError("this run was to be answered from the cache")


@settings(max_examples=25, deadline=None)
@given(EDITS)
def test_warm_findings_are_those_of_a_cold_run(tmp_path_factory, edits):
    """After every edit, addition and removal of files or settings a run with the cache finds what one without does."""
    from spmdguard_lint.config import load_config

    folder = tmp_path_factory.mktemp("project")
    cache = Cache(folder / FOLDER)
    for name, text in [(name, texts[0]) for name, texts in PARTS.items()] + edits:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text, encoding="utf-8")
        config = load_config([folder])
        cold = engine.lint([folder], config)
        assert shown(engine.lint([folder], config, cache=cache)) == shown(cold)
        assert shown(engine.lint([folder], config, cache=cache)) == shown(cold)


def test_a_second_run_analyses_nothing(tree, monkeypatch):
    """Where nothing has changed, the result is found again, with the texts that the report needs."""
    folder = tree({"train.py": PARTS["train.py"][0], "comm.py": PARTS["comm.py"][0]})
    cache = Cache(folder / FOLDER)
    first = engine.lint([folder], Config(), cache=cache)
    monkeypatch.setattr(engine, "_lint", never)
    again = engine.lint([folder], Config(), cache=cache)
    assert first.findings and shown(first) == shown(again)
    named = {finding.site.filename for finding in again.findings}
    assert named <= set(again.sources)
    assert all(again.sources[name].text == first.sources[name].text for name in named)


@pytest.mark.parametrize(
    "change",
    [
        lambda inputs, config: ([*inputs, Input("b.py", Path("b.py"), b"")], config),
        lambda inputs, config: ([replace(inputs[0], content=b"y = 1\n")], config),
        lambda inputs, config: ([replace(inputs[0], filename="./a.py")], config),
        lambda inputs, config: ([replace(inputs[0], path=Path("other/a.py"))], config),
        lambda inputs, config: ([replace(inputs[0], content=None, problem="denied")], config),
        lambda inputs, config: (inputs, replace(config, collectives=("a.sync",))),
        lambda inputs, config: (inputs, replace(config, preview=True)),
        lambda inputs, config: (inputs, replace(config, per_file_ignores=(("a.py", ("SPG1",)),))),
    ],
)
def test_what_a_result_depends_on_is_in_the_key(change):
    """A file's name, place, bytes and existence, and each setting, change the key."""
    inputs, config = [Input("a.py", Path("a.py"), b"x = 1\n")], Config()
    assert run_key(inputs, config) == run_key(list(inputs), replace(config))
    assert run_key(*change(inputs, config)) != run_key(inputs, config)


def test_a_folder_that_becomes_a_package_changes_the_key(tmp_path):
    """An ``__init__.py`` beside or above the files decides about their names, also where it is not linted."""
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True)
    inputs = [Input("a.py", folder / "a.py", b"")]
    before = run_key(inputs, Config(root=tmp_path))
    (tmp_path / "outer" / "__init__.py").touch()
    assert run_key(inputs, Config(root=tmp_path)) != before


def test_findings_survive_being_kept():
    """A finding with all its parts comes back equal."""
    assert decode(json.loads(json.dumps(encode(FINDING)))) == FINDING


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("error", "info"),
        lambda text: text + " ",
        lambda text: "null",
        lambda text: "\x00" * 100,
        lambda text: "[" * 100_000,
    ],
)
def test_a_damaged_result_is_not_there(tmp_path, damage):
    """A result that was cut off, changed or replaced is ignored, and written anew."""
    cache = Cache(tmp_path / "cache")
    stored = Stored((FINDING,), 1, 0, {"SPG201": 2})
    cache.put("0" * 40, stored)
    assert cache.get("0" * 40) == stored
    path = cache.folder / ("0" * 40 + ".json")
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert cache.get("0" * 40) is None
    cache.put("0" * 40, stored)
    assert cache.get("0" * 40) == stored


def test_a_result_of_another_run_under_this_name_is_ignored(tmp_path):
    """A file that was renamed answers no other question than the one it was written for."""
    cache = Cache(tmp_path)
    cache.put("0" * 40, Stored((FINDING,), 1, 0))
    (tmp_path / ("0" * 40 + ".json")).rename(tmp_path / ("1" * 40 + ".json"))
    assert cache.get("1" * 40) is None


@pytest.mark.parametrize(
    "data",
    [None, [], [1] * 12, [*encode(FINDING)[:-1]], ["X", "n", "fatal", *encode(FINDING)[3:]], {"code": 1}],
)
def test_what_is_no_finding_does_not_decode(data):
    """Anything but the form of a finding is a ``ValueError``."""
    with pytest.raises(ValueError, match="not a finding"):
        decode(data)


def test_old_results_make_room(tmp_path):
    """The folder holds a bounded number of results, the newest."""
    cache = Cache(tmp_path)
    for number in range(MAX_ENTRIES + 5):
        cache.put(f"{number:040}", Stored((), number, 0))
        os.utime(tmp_path / f"{number:040}.json", ns=(number, number))
    cache.put("f" * 40, Stored((), 0, 0))
    assert len(list(tmp_path.glob("*.json"))) == MAX_ENTRIES
    assert cache.get("f" * 40) is not None
    assert cache.get(f"{0:040}") is None


def test_the_folder_hides_itself_from_git(tree, process):
    """The command keeps results in a folder that git ignores, and finds the same again."""
    folder = tree({"a.py": PARTS["train.py"][0], "comm.py": PARTS["comm.py"][0]})
    first = process("lint", ".", cwd=folder)
    again = process("lint", ".", cwd=folder)
    assert (first.exit_code, first.out, first.err) == (again.exit_code, again.out, again.err)
    assert first.exit_code == 1
    assert "\n*\n" in (folder / FOLDER / ".gitignore").read_text(encoding="utf-8")
    assert len(list((folder / FOLDER).glob("*.json"))) == 2  # of the run, and of its parts


def test_no_cache_leaves_nothing_behind(tree, in_process):
    """``--no-cache`` writes nothing; ``--cache-dir`` says where."""
    folder = tree({"a.py": "x = 1\n"})
    assert in_process("lint", "a.py", "--no-cache").exit_code == 0
    assert not (folder / FOLDER).exists()
    assert in_process("lint", "a.py", "--cache-dir", "elsewhere").exit_code == 0
    assert list((folder / "elsewhere").glob("*.json"))
    assert not (folder / FOLDER).exists()


def test_results_that_cannot_be_kept_are_a_note(tree, in_process):
    """Where the folder cannot be written, the run goes on, and one note says so."""
    folder = tree({"a.py": PARTS["train.py"][0], "comm.py": PARTS["comm.py"][0]})
    (folder / "taken").write_text("a file, no folder", encoding="utf-8")
    outcome = in_process("lint", ".", "--cache-dir", "taken")
    assert outcome.exit_code == 1
    assert "SPG104" in outcome.out
    assert outcome.err.count("note: the results are not kept") == 1


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_disk_that_takes_nothing(tree, in_process, monkeypatch, number):
    """On a full disk or in a read-only checkout the run goes on, and no half-written file stays."""
    folder = tree({"a.py": PARTS["train.py"][0], "comm.py": PARTS["comm.py"][0]})

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    outcome = in_process("lint", ".")
    assert outcome.exit_code == 1
    assert os.strerror(number) in outcome.err
    assert list((folder / FOLDER).iterdir()) == []


def test_runs_at_once_do_not_disturb_each_other(tree):
    """Several processes that keep the same results at the same time all end well and leave whole files."""
    import subprocess

    folder = tree({"a.py": PARTS["train.py"][0], "comm.py": PARTS["comm.py"][0]})
    command = [sys.executable, "-m", "spmdguard", "lint", ".", "--output-format", "concise"]
    running = [
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    ended = [(process.communicate(timeout=120), process.returncode) for process in running]
    assert len({(out, err, code) for (out, err), code in ended}) == 1
    assert ended[0][1] == 1
    assert sorted(path.suffix for path in (folder / FOLDER).iterdir()) == ["", ".TAG", ".json", ".json"]
    shutil.rmtree(folder / FOLDER)
