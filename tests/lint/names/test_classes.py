"""What is known of classes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from spmdguard_lint.names.classes import ClassInfo
from spmdguard_lint.names.linearise import linearise

from .build import project_of, show


def classes_of(text: str) -> dict[str, ClassInfo]:
    return {c.qualname: c for c in project_of({"m.py": text}).modules["m"].all_classes}


def test_bases_are_resolved_through_subscripts_imports_and_scopes() -> None:
    """``Generic[T]``, imported and nested bases are named; computed ones are unknown."""
    text = (
        "import torch.nn as nn\nfrom typing import Generic\n"
        "class A(nn.Module, Generic[T], make()): pass\n"
        "class B(A):\n    class C: pass\n    class D(C): pass\n"
        "def f():\n    class E(B): pass\n    class F(E): pass\n"
    )
    found = classes_of(text)
    assert [show(base) for base in found["A"].bases] == [
        "external torch.nn.Module",
        "external typing.Generic",
        "unknown make()",
    ]
    assert [show(base) for base in found["B.D"].bases] == ["class m.B.C"]
    assert [c.name for c in found["f.<locals>.F"].mro()] == ["F", "E", "B", "A"]
    assert found["f.<locals>.F"].external_bases() == ["torch.nn.Module", "typing.Generic"]
    assert found["f.<locals>.F"].has_unknown_base()


def test_a_base_that_is_looked_up_in_the_class_itself() -> None:
    """``class A(A.f)``, alone and beside another base, and two classes that each name a member of the other."""
    found = classes_of(
        "class A(A.f): pass\nclass X: pass\nclass B(X, B.g): pass\nclass C(D.f): pass\nclass D(C.f): pass\n"
    )
    orders = {name: [c.name for c in found[name].mro()] for name in "ABCD"}
    assert orders == {"A": ["A"], "B": ["B", "X"], "C": ["C"], "D": ["D"]}


def test_cyclic_bases_end() -> None:
    """Classes that derive from each other have a finite order."""
    found = classes_of("class A(B): pass\nclass B(A): pass\nclass C(C): pass\n")
    assert [c.name for c in found["A"].mro()] == ["A", "B"]
    assert [c.name for c in found["C"].mro()] == ["C"]


def test_methods_setters_and_fields_are_found_through_ancestors() -> None:
    """The nearest definition wins; of several in one body the last."""
    text = (
        "class A:\n    x: int = 1\n    def f(self): pass\n    def f(self): pass\n"
        "    def g(self): pass\n    call = g\n"
        "    @property\n    def p(self): pass\n    @p.setter\n    def p(self, v): pass\n"
        "    @p.deleter\n    def p(self): pass\n"
        "class B(A):\n    def g(self): pass\n"
    )
    found = classes_of(text)
    b = found["B"]
    assert (b.find_method("f").cls.name, b.find_method("f").node.lineno) == ("A", 4)  # type: ignore[union-attr]
    assert [b.find_method(n).qualname for n in ("g", "call", "p")] == ["B.g", "A.g", "A.p"]  # type: ignore[union-attr]
    assert b.find_method("p").node.lineno == 8  # type: ignore[union-attr]
    assert b.find_setter("p").node.lineno == 10  # type: ignore[union-attr]
    assert found["A"] is b.find_class_assignment("x")[0]  # type: ignore[index]
    assert found["A"] is b.find_annotation("x")[0]  # type: ignore[index]
    assert (b.find_method("nothing"), b.find_setter("nothing")) == (None, None)


def test_dataclass_fields_come_in_order() -> None:
    """A decorator of any spelling makes a dataclass; annotations are its fields."""
    found = classes_of(
        "@dataclasses.dataclass(frozen=True)\nclass A:\n    b: int\n    a: str = 'x'\n    c = 1\n"
        "@attr.s\nclass B: pass\n"
    )
    assert (
        found["A"].is_dataclass,
        list(found["A"].annotations),
        list(found["A"].class_assignments),
    ) == (True, ["b", "a"], ["a", "c"])
    assert not found["B"].is_dataclass


def test_self_assignments_of_all_methods() -> None:
    """Plain, annotated, unpacked, looped, entered and augmented targets; closures, not shadowed selves."""
    text = (
        "class A:\n"
        "    def __init__(this, x):\n"
        "        this.a = x\n"
        "        this.b: int = 1\n"
        "        this.c, y = x, 2\n"
        "        this.d, (this.e, z) = f()\n"
        "        for this.f in x: pass\n"
        "        with open(x) as this.g: pass\n"
        "        this.a += 1\n"
        "        this.h = this.i = 3\n"
        "        this.j.k = 4\n"
        "        this.l[0] = 5\n"
        "        other.m = 6\n"
        "        def closure():\n            this.n = 7\n"
        "        def shadow(this):\n            this.o = 8\n"
        "    @staticmethod\n    def s(this):\n        this.p = 9\n"
        "    def t(self):\n        if x:\n            self.q = 10\n"
    )
    cls = classes_of(text)["A"]
    found = {
        name: [(a.value is not None, a.index, a.function.name) for a in entries]
        for name, entries in cls.self_assignments.items()
    }
    assert found == {
        "a": [(True, None, "__init__"), (False, None, "__init__")],
        "b": [(True, None, "__init__")],
        "c": [(True, None, "__init__")],
        "d": [(False, 0, "__init__")],
        "e": [(False, None, "__init__")],
        "f": [(False, None, "__init__")],
        "g": [(False, None, "__init__")],
        "h": [(True, None, "__init__")],
        "i": [(True, None, "__init__")],
        "n": [(True, None, "closure")],
        "q": [(True, None, "t")],
    }
    assert cls.self_assignments["b"][0].annotation is not None


def test_self_assignments_include_ancestors_nearest_first() -> None:
    """What a base class sets comes after what the class sets itself."""
    found = classes_of("class A:\n    def f(self): self.x = 1\nclass B(A):\n    def g(self): self.x = 2\n")
    assert [a.function.qualname for a in found["B"].find_self_assignments("x")] == ["B.g", "A.f"]


def test_subclasses_are_found_in_relevant_files() -> None:
    """Direct and indirect subclasses, across files, in file order."""
    files = {
        "a.py": "import torch.distributed as dist\nclass A: pass\nclass B(A): pass\n",
        "b.py": "import torch.distributed as dist\nimport a\nclass C(a.B): pass\nclass D: pass\n",
    }
    project = project_of(files)
    base = project.modules["a"].all_classes[0]
    assert [c.name for c in project.subclasses(base)] == ["B", "C"]


@st.composite
def hierarchies(draw: st.DrawFn) -> list[list[int]]:
    """For class i, its bases among the classes before it."""
    bases: list[list[int]] = []
    for index in range(draw(st.integers(1, 9))):
        bases.append(draw(st.lists(st.integers(0, index - 1), unique=True, max_size=3)) if index else [])
    return bases


@settings(max_examples=300, deadline=None)
@given(hierarchies())
def test_the_order_is_the_interpreters(bases: list[list[int]]) -> None:
    """Wherever Python accepts a hierarchy, lookup order is Python's; elsewhere each ancestor comes once."""
    classes: dict[int, type] = {}
    for index, parents in enumerate(bases):
        order = linearise(index, lambda i: bases[i])
        try:
            classes[index] = type(str(index), tuple(classes[p] for p in parents), {})
        except (TypeError, KeyError):
            assert len(order) == len(set(order)) and order[0] == index
            continue
        assert [c.__name__ for c in classes[index].__mro__[:-1]] == [str(i) for i in order]
