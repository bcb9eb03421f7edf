"""Positions in the tables of other packages are where their source has them, read with ``ast``, not imported.

A package is looked for in the folders of ``SPMDGUARD_PACKAGES`` (separated as in ``PATH``), then among the
installed ones; without it, its check is skipped.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from spmdguard_lint.facts.fact import Arg, Fact

from .walk import places, tables

PACKAGES = (
    "accelerate",
    "composer",
    "deepspeed",
    "lightning_fabric",
    "megatron",
    "mmengine",
    "pytorch_lightning",
    "torchmetrics",
    "torchtitan",
    "torchtune",
    "transformers",
)
# made by the frameworks at run time, or older than the version read
NOT_IN_SOURCE = {
    "accelerate.Prepared",
    "accelerate.PreparedLoader",
    "deepspeed.InferenceEngine.generate",
    "transformers.Trainer._nested_gather",
    "transformers.Trainer.log_metrics",
    "transformers.Trainer.save_metrics",
    "transformers.Trainer.save_state",
    "transformers.PreTrainedModel.generate",
}
# Megatron-LM's own training package is not part of megatron-core
SECTIONS = ("megatron.training.",)


@dataclass
class Source:
    """Functions and classes of a package by their last name."""

    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)

    def methods(self, class_name: str, method: str, depth: int = 0) -> Iterator[ast.FunctionDef]:
        """Definitions of a method in the classes of that name and in their bases."""
        for cls in self.classes.get(class_name, []):
            own = [n for n in ast.walk(cls) if isinstance(n, ast.FunctionDef) and n.name == method]
            yield from own
            if not own and depth < 5:
                for base in cls.bases:
                    yield from self.methods(ast.unparse(base).rpartition(".")[2], method, depth + 1)


@cache
def folder(package: str) -> Path | None:
    """Where the package's source lies."""
    given = [p for p in os.environ.get("SPMDGUARD_PACKAGES", "").split(os.pathsep) if p]
    for base in given:
        for found in (Path(base) / package, *sorted(Path(base).glob(f"*/{package}"))):
            if found.is_dir():
                return found
    spec = PathFinder.find_spec(package)
    locations = list(spec.submodule_search_locations or []) if spec is not None else []
    return Path(locations[0]) if locations else None


@cache
def source(package: str) -> Source:
    """The package's definitions; nested ones too, since many stand under ``if`` and ``try``."""
    found = Source()
    root = folder(package)
    assert root is not None
    for path in sorted(root.rglob("*.py")):
        if package == "transformers" and "models" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text(errors="replace"))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                found.classes.setdefault(node.name, []).append(node)
    return found


def agrees(arg: Arg, definition: ast.FunctionDef | ast.AsyncFunctionDef, member: bool) -> bool:
    """Whether a definition has the argument where the fact says."""
    positional = [a.arg for a in definition.args.posonlyargs + definition.args.args]
    static = any(ast.unparse(d) == "staticmethod" for d in definition.decorator_list)
    if member and not static:
        positional = positional[1:]
    if arg.index == -1:
        return arg.keyword in [a.arg for a in definition.args.kwonlyargs]
    return arg.index < len(positional) and positional[arg.index] == arg.keyword


def stated(package: str) -> Iterator[tuple[str, str, str, Fact]]:
    """Name, class (or ""), last name and fact of everything that the tables say about a package."""
    known = tables()
    for name, fact in known.functions.items():
        if name.startswith(package + ".") and not name.startswith(SECTIONS):
            last = name.rpartition(".")[2]
            yield (name, last, "__init__", fact) if last[:1].isupper() else (name, "", last, fact)
    for type_name, facts in known.types.items():
        if type_name.startswith(package + "."):
            for method, fact in facts.methods.items():
                yield f"{type_name}.{method}", type_name.rpartition(".")[2], method, fact


@pytest.mark.parametrize("package", PACKAGES)
def test_names_and_positions_agree_with_the_source(package: str) -> None:
    """Every function, class and method of the table exists, and one definition has all stated positions."""
    if folder(package) is None:
        pytest.skip(f"{package} is not at hand")
    found = source(package)
    missing, wrong = [], []
    for name, class_name, last, fact in stated(package):
        if name in NOT_IN_SOURCE or any(name.startswith(n + ".") for n in NOT_IN_SOURCE):
            continue
        member = bool(class_name)
        definitions = [*found.methods(class_name, last)] if member else found.functions.get(last, [])
        if not definitions and not (member and class_name in found.classes and last == "__init__"):
            missing.append(name)
        elif definitions and not any(
            all(agrees(arg, definition, member) for arg in places(fact)) for definition in definitions
        ):
            wrong.append(f"{name}: {places(fact)}")
    assert (missing, wrong) == ([], [])


def test_the_comparison_can_fail() -> None:
    """A wrong index or keyword is noticed, receivers are not counted, static methods have none."""
    tree = ast.parse("class A:\n    def f(self, a, *, b): ...\n    @staticmethod\n    def g(a): ...\n")
    f, g = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    assert agrees(Arg(0, "a"), f, True) and agrees(Arg(-1, "b"), f, True) and agrees(Arg(0, "a"), g, True)
    assert not agrees(Arg(1, "a"), f, True)
    assert not agrees(Arg(0, "b"), f, True)
    assert not agrees(Arg(-1, "a"), f, True)
