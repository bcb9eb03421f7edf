"""Parts of a run with nothing to do with one another: each found by itself, and known again while it can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spmdguard_lint import analysis, engine
from spmdguard_lint.cache import parts
from spmdguard_lint.cache.store import FOLDER, Cache
from spmdguard_lint.config import Config
from spmdguard_lint.names import relevance
from spmdguard_lint.names.project import Project
from spmdguard_lint.source.reading import decode_source

SYNC = "import torch.distributed as dist\ndef sync(x):\n    dist.all_reduce(x)\n"
STEP = """import torch.distributed as dist
from {module} import sync
def step(x):
    if dist.get_rank() == 0:
        sync(x)
"""
PLAIN = "def shape(x):\n    return x.shape\n"
TEXTS = {
    "one/comm.py": [SYNC, SYNC.replace("all_reduce(x)", "get_rank()"), "def sync(x:\n", PLAIN],
    "one/train.py": [
        STEP.format(module="comm"),
        PLAIN,
        "from comm import *\nfrom helpers import *\nsync(1)\n",
    ],
    "one/helpers.py": [PLAIN, "names = ['sync']\n", "from comm import sync\n", "def shape(x:\n"],
    "one/timed.py": [
        "import time\nfrom comm import sync\ndef late(x):\n    if time.time() > 9:\n        sync(x)\n",
        "from comm import sync\ndef late(x):\n    sync(x)\n",
        "import comm\ndef late(x):\n    return comm.shape(x)\n",
        "import comm, random\ndef late(x):\n    return random.random() > 1 or comm.sync(x)\n",
    ],
    "two/comm.py": [SYNC, PLAIN],
    "two/train.py": [STEP.format(module="comm"), STEP.format(module="pkg.comm")],
    "pkg/__init__.py": ["", "from .comm import *\n"],
    "pkg/comm.py": [SYNC, "from .other import *\n", "from two.comm import sync\n"],
    "pkg/other.py": [PLAIN, SYNC, "__all__ = ['sync']\nfrom pkg.comm import sync\n"],
    "lone.py": [
        "from pkg import sync\nimport torch.distributed as dist\nif dist.get_rank():\n    sync(1)\n",
        PLAIN,
    ],
}
EDITS = st.lists(
    st.sampled_from(sorted(TEXTS)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from([None, *TEXTS[name]]))
    ),
    min_size=1,
    max_size=6,
)


def shown(result: engine.LintResult) -> list[object]:
    """What a user sees of a result."""
    return [result.findings, result.num_files, result.num_suppressed, dict(result.num_advice)]


def write(folder: Path, name: str, text: str | None) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    if text is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("large", [400, 1])
@settings(max_examples=25, deadline=None)
@given(edits=EDITS)
def test_after_each_edit_the_findings_are_those_of_a_cold_run(tmp_path_factory, large, edits):
    """Whatever is edited, added or removed; also with the stricter choice of files that large projects have."""
    folder = tmp_path_factory.mktemp("project")
    cache = Cache(folder / FOLDER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relevance, "_LARGE", large)
        for name, texts in TEXTS.items():
            write(folder, name, texts[0])
        engine.lint([folder], Config(root=folder), cache=cache)
        for name, text in edits:
            write(folder, name, text)
            cold = engine.lint([folder], Config(root=folder))
            assert shown(engine.lint([folder], Config(root=folder), cache=cache)) == shown(cold)


def test_a_change_costs_its_own_part_alone(tree):
    """Two programs side by side: what was found in one is known when the other has changed."""
    folder = tree(
        {f"{place}/{name}.py": TEXTS[f"one/{name}.py"][0] for place in "ab" for name in ("comm", "train")}
    )
    cache = Cache(folder / FOLDER)
    first = engine.lint([folder], Config(), cache=cache)
    assert [finding.site.filename for finding in first.findings] == ["a/train.py", "b/train.py"]
    assert first.num_analysed == 4
    write(folder, "b/train.py", PLAIN)
    second = engine.lint([folder], Config(), cache=cache)
    assert [finding.site.filename for finding in second.findings] == ["a/train.py"]
    assert second.num_analysed == 2
    write(folder, "a/train.py", "import b.comm\n" + TEXTS["one/train.py"][0])  # one part from now on
    assert engine.lint([folder], Config(), cache=cache).num_analysed == 4


def test_a_file_that_was_not_read_may_change(tree, monkeypatch):
    """A file that does not matter matters as little when it is edited; a mistake in it is reported all the same."""
    folder = tree({"comm.py": SYNC, "train.py": STEP.format(module="comm"), "model.py": PLAIN})
    cache = Cache(folder / FOLDER)
    first = engine.lint([folder], Config(), cache=cache)
    monkeypatch.setattr(analysis, "analyse", _never)
    write(folder, "model.py", PLAIN + "\n\ndef more(x):\n    return x.max()\n")
    second = engine.lint([folder], Config(), cache=cache)
    assert shown(second) == shown(first)
    assert second.num_analysed == 0
    write(folder, "model.py", "def broken(:\n")
    assert [finding.code for finding in engine.lint([folder], Config(), cache=cache).findings] == [
        "SPG903",
        "SPG104",
    ]
    write(folder, "model.py", PLAIN)
    assert shown(engine.lint([folder], Config(), cache=cache)) == shown(first)


@pytest.mark.parametrize(
    "text",
    [
        "from comm import sync\ndef call(x):\n    sync(x)\n",
        "import comm\ndef call(x):\n    comm.sync(x)\n",
        "import torch.distributed as dist\n",
        PLAIN + "# destroy_process_group\n",
    ],
)
def test_a_file_that_begins_to_matter_is_read(tree, monkeypatch, text):
    """What was not read before is read where an edit gives another answer to what was asked of it."""
    folder = tree({"comm.py": SYNC, "train.py": STEP.format(module="comm"), "model.py": PLAIN})
    cache = Cache(folder / FOLDER)
    engine.lint([folder], Config(), cache=cache)
    write(folder, "model.py", text)
    assert engine.lint([folder], Config(), cache=cache).num_analysed == 3


def test_what_is_found_in_a_program_does_not_depend_on_its_neighbours(tree):
    """Programs that are linted together give the findings that each gives alone."""
    folder = tree({name: texts[0] for name, texts in TEXTS.items() if name.startswith(("one", "pkg"))})
    alone = [
        finding
        for place in ("one", "pkg")
        for finding in engine.lint([folder / place], Config(root=folder)).findings
    ]
    together = engine.lint([folder / "one", folder / "pkg"], Config(root=folder)).findings
    assert alone
    assert list(together) == alone


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/x.py": "", "b/y.py": ""}, [["a/x.py"], ["b/y.py"]]),
        ({"a/x.py": "", "a/y.py": ""}, [["a/x.py", "a/y.py"]]),
        ({"a/x.py": "import y\n", "b/y.py": ""}, [["a/x.py"], ["b/y.py"]]),  # from a, `y` cannot be b/y.py
        ({"a/x.py": "from b.y import z\n", "b/y.py": "z = 1\n"}, [["a/x.py", "b/y.py"]]),
        (
            {"p/__init__.py": "", "p/q/__init__.py": "", "p/q/x.py": "", "p/r/__init__.py": ""},
            [["p/__init__.py", "p/q/__init__.py", "p/q/x.py", "p/r/__init__.py"]],
        ),
        (
            {"a/x.py": "import p.q.z\n", "b/x.py": "", "p/__init__.py": "", "p/q/z.py": ""},
            [["a/x.py", "p/__init__.py", "p/q/z.py"], ["b/x.py"]],
        ),
    ],
)
def test_files_are_connected_by_imports_packages_and_folders(files, expected):
    """Each part has its files in their order, and the parts come in the order of their first files."""
    project = Project.load(
        [decode_source(text.encode(), f"/somewhere/{name}") for name, text in files.items()]
    )
    found = [[module.filename for module in part.all_modules] for part in project.parts()]
    assert [[name.removeprefix("/somewhere/") for name in part] for part in found] == expected


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("parts"),
        lambda data: data["parts"][0].pop("frame"),
        lambda data: data["parts"][0]["findings"].append(["SPG101"]),
        lambda data: data["questions"].append(["no such question"]),
        lambda data: data["questions"].clear(),
        lambda data: data["parts"][0]["texts"].append(3),
    ],
)
def test_a_record_of_another_form_counts_as_none(tree, damage):
    """Nothing is known again from a record that does not read as one."""
    folder = tree({"comm.py": SYNC, "train.py": STEP.format(module="comm"), "model.py": PLAIN})
    cache = Cache(folder / FOLDER)
    first = engine.lint([folder], Config(), cache=cache)
    results = parts.PartResults(cache, [folder], Config())
    data: Any = cache.read(results._name)
    damage(data)
    cache.write(results._name, data)
    write(folder, "model.py", PLAIN + "\n")
    again = engine.lint([folder], Config(), cache=cache)
    assert again.num_analysed == 3
    assert shown(again) == shown(first)


def _never(*_: object) -> object:
    raise AssertionError("this was to be known from the run before")
