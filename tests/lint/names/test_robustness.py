"""Odd but valid code, and code that is neither."""

from __future__ import annotations

import pytest
from spmdguard_lint.names.project import Project

from .build import project_of, show, source

ODD = {
    "deep elif": "if a: pass\n" + "elif b: pass\n" * 400 + "else:\n    def f(): pass\n",
    "deep functions": "".join(f"{' ' * i}def f{i}():\n" for i in range(60)) + " " * 60 + "pass\n",
    "deep classes": "".join(f"{' ' * i}class C{i}:\n" for i in range(60)) + " " * 60 + "x = 1\n",
    "duplicate": "def f(): pass\nclass f: pass\nf = 1\nimport f\n",
    "self import": "import m\nfrom m import *\nfrom . import *\nfrom m import f\n",
    "attributes": "import os\nos.path = 1\nos.a.b = c = os\n[x, *y], z[0], w.v = q\n",
    "unicode": "ﬁ = 1\nclass Ünïcode:\n    def mé(self): self.ñ = 1\n",
    "empty": "",
    "only a comment": "# nothing",
    "form feed": "\x0cdef f(): pass\n\x0c\nclass C: pass\n",
    "async": "async def f():\n    async with a as b:\n        async for c in d:\n            yield c\n",
    "bases": "class A(metaclass=M, x=1): pass\nclass B(*b, **k): pass\nclass C(a[0].b, (lambda: 1)()): x\n",
    "odd all": "__all__ = [a] + b\n__all__ += c\n__all__: list = ['x', 1]\n__all__.extend(['y'])\n",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_code_is_indexed(text: str) -> None:
    """Every question about it has an answer."""
    project = project_of({"m.py": text})
    module = project.modules["m"]
    assert project.errors == [] and project.relevant_modules() in ([], [module])
    for name in (*module.bindings, "f", "missing.name", "m.m.m.f"):
        assert show(project.resolve(module, name))
    for function in module.all_functions:
        assert function.scope is function.scope and function.is_generator in (True, False)
    for cls in module.all_classes:
        assert cls.mro() and cls.bases is not None and cls.self_assignments is not None


def test_a_file_that_cannot_be_parsed_is_an_error_and_an_empty_module() -> None:
    """The others are indexed all the same."""
    project = project_of({"bad.py": "def f(:\n", "good.py": "from bad import f\n"})
    assert show(project.resolve(project.modules["good"], "f")) == "unknown bad.f"
    assert [(e.filename, e.row) for e in project.errors] == [("/nowhere/bad.py", 1)]
    assert project.modules["bad"].all_functions == []


def test_no_files_make_an_empty_project() -> None:
    """Nothing to visit, nothing to fail."""
    assert Project.load([]).relevant_modules() == []


def test_a_huge_file_is_indexed() -> None:
    """Fifty thousand lines are no special case."""
    text = "import torch.distributed as dist\n" + "".join(
        f"def f{i}(self):\n    self.x = {i}\n    if dist.get_rank() == 0:\n        f{i - 1}(1)\n\n"
        for i in range(10_000)
    )
    project = Project.load([source("/nowhere/m.py", text)])
    module = project.relevant_modules()[0]
    assert len(module.all_functions) == 10_000
    assert show(project.resolve(module, "f9999")) == "function m.f9999"


def test_global_assignments_say_who_rebinds_a_module_level_name() -> None:
    """Only assignments under ``global`` count."""
    text = (
        "_GROUP = None\n"
        "def init():\n    global _GROUP, _OTHER\n"
        "    _GROUP = new_group()\n    _OTHER, x = f()\n    _GROUP += 1\n"
        "def local():\n    _GROUP = 3\n"
    )
    found = project_of({"m.py": text}).modules["m"].global_assignments
    assert {name: [a.value is not None for a in entries] for name, entries in found.items()} == {
        "_GROUP": [True, False],
        "_OTHER": [False],
    }
