"""Bodies of functions that were put aside come back as they were, whichever way they are asked for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from spmdguard_lint.names import bodies
from spmdguard_lint.names.modules import Module

from .build import project_of

REPOSITORY = Path(__file__).parents[3]
FILES = [
    *sorted((REPOSITORY / "spmdguard").rglob("*.py"))[:60],
    *sorted((REPOSITORY / "tests" / "corpus").rglob("bad.py"))[:60],
]

ODD = '''
if True:
    \\
    def continued(a):
        b = a
        c = b
        return """
rows of a text
  that is not indented
"""
class Outer:
\tdef tabs(self, x=lambda: 1, *,
\t         y: "é" = 'ö'):  # comment
\t\tasync def inner():
\t\t\tawait x
\t\treturn inner

\t@property
\tasync def alone(self) -> "ü":
\t\tä = 'ß'; ö = f"{ä}"
\t\tfor i in range(3): print(i, ä)
\t\treturn ö
\tclass Deeper:
\t\tdef method(self):
\t\t\tif self:
\t\t\t\treturn 1
\t\t\treturn (lambda q: q)(2)
def one(): return 1
def short():
    pass
def last(x):
    x += 1
    x += 2
    return x'''


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_PLENTY", 0)


def module_of(text: str) -> Module:
    return project_of({"m.py": text}).all_modules[0]


def shown(tree: ast.AST) -> str:
    return ast.dump(tree, include_attributes=True)


@pytest.mark.parametrize("singly", [0, 2, 1000])
def test_bodies_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch, singly: int) -> None:
    """Asked for one by one or all at once, each body is what a parse of the whole file gives, with its places."""
    monkeypatch.setattr(bodies, "_SINGLY", singly)
    put_aside = 0
    for text in (ODD, *(path.read_text() for path in FILES)):
        whole = ast.parse(text)
        module = module_of(text)
        functions = {(f.header.lineno, f.header.col_offset): f for f in module.all_functions}
        put_aside += sum(not f.header.body for f in functions.values())  # type: ignore[arg-type]  # no lambdas
        for node in ast.walk(whole):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert shown(functions[node.lineno, node.col_offset].node) == shown(node)
        assert shown(module.tree) == shown(whole)
    assert put_aside > 300


def test_the_whole_tree_has_all_bodies() -> None:
    """Whoever takes the tree of a file gets all of it."""
    assert shown(module_of(ODD).tree) == shown(ast.parse(ODD))


def test_a_class_has_its_bodies() -> None:
    """Whoever takes the node of a class gets its methods' bodies, and no others."""
    whole = {node.name: node for node in ast.walk(ast.parse(ODD)) if isinstance(node, ast.ClassDef)}
    module = module_of(ODD)
    for cls in module.all_classes:
        assert shown(cls.node) == shown(whole[cls.name])
    assert not module.outline.body[-1].body, "a function outside of the classes is still put aside"  # type: ignore[attr-defined]


def test_what_is_tied_to_its_nodes_stays() -> None:
    """Short functions and those that hold others keep their bodies."""
    module = module_of(ODD)
    kept = {f.qualname for f in module.all_functions if f.header.body}  # type: ignore[union-attr]  # no lambdas
    assert kept == {"Outer.tabs", "Outer.tabs.<locals>.inner", "one", "short"}


def test_a_node_stays_the_same_node() -> None:
    """A definition is the same node before and after, and what was read once is not read again."""
    module = module_of(ODD)
    function = next(f for f in module.all_functions if f.name == "last")
    before = function.header
    assert function.node is before
    assert module.function_for(before) is function  # type: ignore[arg-type]  # no lambda
    body = function.body
    assert module.tree.body[-1].body is body, "what was read once is not read again"  # type: ignore[attr-defined]
