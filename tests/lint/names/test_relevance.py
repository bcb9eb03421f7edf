"""Which files the analysis visits."""

from __future__ import annotations

from collections.abc import Mapping

from .build import project_of

LIBRARY = {
    "lib/__init__.py": "from .comm import sync, Store\nfrom . import comm\n",
    "lib/comm.py": (
        "import torch.distributed as dist\n"
        "def sync(): dist.barrier()\n"
        "def plain(): return 1\n"
        "def is_main(): return dist.get_rank() == 0\n"
        "class Store:\n"
        "    def save(self): self.flush_all()\n"
        "    def flush_all(self): helper()\n"
        "    def peek(self): pass\n"
        "class Runner:\n"
        "    def __call__(self): sync()\n"
        "def helper(): sync()\n"
    ),
}


def visited(files: Mapping[str, str], **options: object) -> list[str]:
    project = project_of({**LIBRARY, **files}, **options)  # type: ignore[arg-type]
    return [m.name for m in project.relevant_modules() if not m.name.startswith("lib")]


def test_files_with_markers_are_visited_in_the_given_order() -> None:
    """A marker in the text is enough; others are not even parsed."""
    files = {"z.py": "import torch.distributed\n", "a.py": "rank_zero_only\n", "m.py": "x = 1\n"}
    project = project_of(files)
    assert [m.name for m in project.relevant_modules()] == ["z", "a"]
    assert not project.modules["m"].is_parsed


def test_callers_of_what_reaches_a_collective_are_visited() -> None:
    """Through plain, renamed, re-exported, qualified and local imports; by call or as argument."""
    files = {
        "a.py": "from lib.comm import sync\ndef f(): sync()\n",
        "b.py": "from lib import sync as s\nregister(s)\n",
        "c.py": "import lib\ndef f(): lib.comm.helper()\n",
        "d.py": "from lib import comm\ncomm.helper()\n",
        "e.py": "def f():\n  from lib.comm import (\n    plain,  # why\n    helper,\n  )\n  helper()\n",
        "f.py": "import lib.comm as c\nc.sync()\n",
    }
    assert list("abcdef") == visited(files)


def test_callers_of_what_does_not_are_not() -> None:
    """Importing the module is not enough."""
    files = {
        "a.py": "from lib.comm import plain\nplain()\n",
        "b.py": "import lib\nlib.comm.plain()\n",
        "c.py": "from elsewhere import sync\nsync()\n",
        "d.py": "def sync(): pass\nsync()\n",
    }
    assert visited(files) == []


def test_methods_that_reach_make_their_users_visited() -> None:
    """A class counts when a method that reaches is named, or runs by use."""
    files = {
        "a.py": "from lib import Store\ndef f(s: Store): s.save()\n",
        "b.py": "from lib import Store\ndef f(s: Store): s.peek()\n",
        "c.py": "from lib.comm import Runner\nrun = Runner()\n",
        "d.py": "from lib import Store\nclass Mine(Store):\n    def g(self): self.flush_all()\n",
    }
    assert visited(files) == ["a", "c", "d"]


def test_chains_of_files_are_followed() -> None:
    """A wrapper of a wrapper is found although neither file has a marker."""
    files = {
        "one.py": "from lib import sync\ndef wrap(): sync()\n",
        "two.py": "from one import wrap\ndef again(): wrap()\n",
        "three.py": "from two import again\nagain()\n",
        "other.py": "from two import nothing\nnothing()\n",
    }
    assert visited(files) == ["one", "two", "three"]


def test_the_users_own_markers_count() -> None:
    """Names of the configuration, dotted ones by their last part, are markers and reach like collectives."""
    files = {"a.py": "def f(): my_sync()\n", "b.py": "from a import f\nf()\n"}
    assert visited(files) == []
    assert visited(files, extra_markers=("company.comm.my_sync",)) == ["a", "b"]


def test_in_a_large_project_a_file_must_be_able_to_differ() -> None:
    """Beyond some hundred unmarked files, a call counts only beside a value that can differ."""
    files = {f"filler{i}.py": "x = 1\n" for i in range(500)}
    files |= {
        "a.py": "from lib import sync\ndef f(): sync()\n",
        "b.py": "from lib import sync\ndef f():\n    if time.time() > 1: sync()\n",
        "c.py": "from lib.comm import sync, is_main\ndef f():\n    if is_main(): sync()\n",
        "d.py": "from lib import sync\ndef f(): sync()\ndef g(): return time.time()\n",
        "e.py": "from lib import sync\ndef f():\n  if late(): sync()\ndef late(): return time.time()\n",
        "f.py": 'from lib import Store\ndef f():\n  """\n  >>> Store().save()\n  """\n  time.time()\n',
    }
    assert visited(files) == ["b", "c", "e"]


def test_the_answer_does_not_depend_on_what_was_asked_before() -> None:
    """Resolving names first, which parses files, changes nothing."""
    files = {"a.py": "from lib import sync\nsync()\n", "b.py": "x = 1\n"}
    project = project_of({**LIBRARY, **files})
    for module in project.all_modules:
        project.resolve(module, "sync")
        assert module.tree is not None
    assert [m.name for m in project.relevant_modules()] == ["lib", "lib.comm", "a"]
