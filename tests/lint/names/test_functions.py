"""What is known of functions."""

from __future__ import annotations

import ast
import symtable
import sysconfig
from pathlib import Path

import pytest
from spmdguard_lint.names.functions import FunctionInfo

from .build import project_of, real_project

STDLIB = Path(sysconfig.get_paths()["stdlib"])
SAMPLE = [
    "argparse",
    "ast",
    "asyncio/base_events",
    "contextlib",
    "dataclasses",
    "inspect",
    "typing",
]


def functions_of(text: str) -> dict[str, FunctionInfo]:
    return {f.qualname: f for f in project_of({"m.py": text}).modules["m"].all_functions}


def test_every_function_is_listed_with_its_place() -> None:
    """Methods, nested functions and conditional definitions are found, in source order."""
    text = (
        "def a():\n    def b():\n        class C:\n            def d(self): pass\n"
        "class E:\n    if x:\n        def f(self): pass\n    else:\n        async def g(self): pass\n"
        "    class H:\n        def i(self): pass\n"
        "try:\n    pass\nexcept E:\n    def j(): pass\nfinally:\n    def k(): pass\n"
    )
    found = functions_of(text)
    assert list(found) == [
        "a", "a.<locals>.b", "a.<locals>.b.<locals>.C.d", "E.f", "E.g", "E.H.i", "j", "k",
    ]  # fmt: skip
    assert [
        f.cls.name if f.cls else None
        for f in (found["E.f"], found["E.H.i"], found["a.<locals>.b.<locals>.C.d"], found["a"])
    ] == ["E", "H", "C", None]
    assert found["a"] is found["a.<locals>.b"].parent
    assert {"b": found["a.<locals>.b"]} == found["a"].nested_functions
    assert found["E.g"].is_async


def test_decorators_tell_the_kind() -> None:
    """Property, setter, static and class methods, whatever module the decorator is written with."""
    text = (
        "class C:\n"
        "    @property\n    def a(self): pass\n"
        "    @a.setter\n    def a(self, v): pass\n"
        "    @functools.cached_property\n    def b(self): pass\n"
        "    @staticmethod\n    def c(x): pass\n"
        "    @classmethod\n    def d(cls): pass\n"
        "    def __new__(cls): pass\n"
        "    @deco(1)\n    def e(this, *rest): pass\n"
    )
    cls = project_of({"m.py": text}).modules["m"].all_classes[0]
    kinds = {
        f.name: (f.is_property, f.is_staticmethod, f.is_classmethod, f.self_name)
        for f in cls.methods.values()
    }
    assert kinds == {
        "a": (True, False, False, "self"),
        "b": (True, False, False, "self"),
        "c": (False, True, False, None),
        "d": (False, False, True, "cls"),
        "__new__": (False, True, False, "cls"),
        "e": (False, False, False, "this"),
    }
    assert cls.find_setter("a") is cls.functions[1]
    assert cls.methods["e"].decorator_names == ("deco",)


def test_parameters_keep_kind_default_and_annotation() -> None:
    """The signature is read in order."""
    found = functions_of("def f(a, b=1, /, c: int = 2, *d, e, g=None, **h): pass\n")["f"]
    assert [(p.name, p.kind, p.default is not None) for p in found.params] == [
        ("a", "positional-only", False), ("b", "positional-only", True), ("c", "positional", True),
        ("d", "vararg", False), ("e", "keyword-only", False), ("g", "keyword-only", True),
        ("h", "kwarg", False),
    ]  # fmt: skip
    assert found.params[2].annotation is not None


def test_generators_are_told_by_their_own_yield() -> None:
    """A yield of a nested function or lambda makes no generator; one inside an expression does."""
    text = (
        "def a():\n    def b():\n        yield 1\n"
        "def c():\n    x = yield\n"
        "def d():\n    return [(yield)]\n"
        "def e():\n    f = lambda: (yield)\n"
        "def g():\n    if x:\n        yield from y\n"
    )
    found = functions_of(text)
    assert [name for name, f in found.items() if f.is_generator] == ["a.<locals>.b", "c", "d", "g"]


def test_global_names_are_not_local() -> None:
    """``global`` and ``nonlocal`` names belong to the scopes outside."""
    text = "def f():\n    global a\n    a = b = 1\n    def g():\n        nonlocal b\n        b = 2\n"
    found = functions_of(text)
    assert ({"b", "g"}, {"a"}) == (set(found["f"].local_names), set(found["f"].global_names))
    assert (set(), {"b"}) == (
        set(found["f.<locals>.g"].local_names),
        set(found["f.<locals>.g"].nonlocal_names),
    )


def test_lambdas_are_functions_on_demand() -> None:
    """The same lambda gives the same function, with parameters and one returned expression."""
    module = project_of({"m.py": "f = lambda a, b=(y := 1): a\n"}).modules["m"]
    node = module.tree.body[0].value  # type: ignore[attr-defined]
    found = module.lambda_for(node, None)
    assert found is module.lambda_for(node, None)
    assert ([p.name for p in found.params], found.qualname) == (["a", "b"], "<lambda>")
    assert type(found.body[0]).__name__ == "Return"


@pytest.mark.parametrize("name", SAMPLE)
def test_local_names_agree_with_the_compiler(name: str) -> None:
    """For every function of real files, the names are those that ``symtable`` calls local."""
    path = STDLIB / f"{name}.py"
    if not path.exists():
        path = STDLIB / name / "__init__.py"
    module = real_project([path]).all_modules[0]
    expected: dict[tuple[str, int], list[set[str]]] = {}
    pending = [symtable.symtable(path.read_text("utf-8"), str(path), "exec")]
    while pending:
        table = pending.pop()
        pending.extend(table.get_children())
        if isinstance(table, symtable.Function):
            names = {
                s.get_name() for s in table.get_symbols() if s.is_local() and not s.get_name().startswith(".")
            }
            expected.setdefault((table.get_name(), table.get_lineno()), []).append(names)
    assert module.all_functions
    for function in module.all_functions:
        first = min([function.node.lineno, *(d.lineno for d in function.decorators)])
        rows = {function.node.lineno, first}
        candidates = [names for row in sorted(rows) for names in expected.get((function.name, row), [])]
        own = {_mangled(n, function) for n in function.local_names}
        extra = _comprehension_targets(function)
        assert any(own <= names <= own | extra for names in candidates), function


def _comprehension_targets(function: FunctionInfo) -> set[str]:
    """Names that Python 3.12 and later list with the function's, because comprehensions are inlined there."""
    comprehensions = (n for n in ast.walk(function.node) if isinstance(n, ast.comprehension))
    return {n.id for c in comprehensions for n in ast.walk(c.target) if isinstance(n, ast.Name)}


def _mangled(name: str, function: FunctionInfo) -> str:
    scope: FunctionInfo | None = function
    while scope is not None and scope.cls is None:
        scope = scope.parent
    if scope is None or scope.cls is None or not name.startswith("__") or name.endswith("__"):
        return name
    return f"_{scope.cls.name.lstrip('_')}{name}"
