"""The index on real code: the standard library, with real imports as the judge."""

from __future__ import annotations

import ast
import importlib
import sysconfig
import types
from pathlib import Path

import pytest
from spmdguard_lint.names.dotted import dotted_name
from spmdguard_lint.names.symbols import ClassSymbol, ExternalSymbol, FunctionSymbol, ModuleSymbol, Symbol

from .build import real_project

STDLIB = Path(sysconfig.get_paths()["stdlib"])
PACKAGES = ["json", "email", "logging", "concurrent", "unittest", "importlib", "xml", "multiprocessing"]


def _files(package: str) -> list[Path]:
    return sorted(p for p in (STDLIB / package).rglob("*.py") if "test" not in p.parts)


def _name(symbol: Symbol) -> str:
    if isinstance(symbol, ModuleSymbol):
        return symbol.module.name
    if isinstance(symbol, (FunctionSymbol, ClassSymbol)):
        return symbol.info.full_name
    return symbol.qualname if isinstance(symbol, ExternalSymbol) else ""


@pytest.mark.parametrize("package", PACKAGES)
def test_names_lead_where_real_imports_lead(package: str) -> None:
    """Every module-level name that is a project function or class resolves to that object's definition."""
    project = real_project(_files(package))
    num_checked = 0
    for module in project.all_modules:
        if module.name.endswith("__main__"):
            continue
        try:
            real = importlib.import_module(module.name)
        except ImportError:
            continue  # modules of other platforms
        for name in module.bindings:
            value = getattr(real, name, None)
            if not isinstance(value, (types.FunctionType, type)) or value.__module__ not in project.modules:
                continue
            expected = f"{value.__module__}.{value.__qualname__}"
            found = project.resolve(module, name)
            if isinstance(found, (FunctionSymbol, ClassSymbol)) and "<locals>" not in expected:
                num_checked += 1
                assert expected == _name(found), f"{module.name}.{name}"
    assert num_checked > 10


@pytest.mark.parametrize("package", ["asyncio", "json"])
def test_star_imports_bind_what_python_binds(package: str) -> None:
    """Every public name of a package built of star imports is found in the module that defines it."""
    project = real_project(_files(package))
    module = project.modules[package]
    real = importlib.import_module(package)
    for name in real.__all__:
        value = getattr(real, name)
        if isinstance(value, (types.FunctionType, type)) and value.__module__ in project.modules:
            found = project.resolve(module, name)
            if value.__module__.startswith(f"{package}.") and "<locals>" not in value.__qualname__:
                assert _name(found) == f"{value.__module__}.{value.__qualname__}"


@pytest.mark.parametrize("package", ["asyncio", "importlib", "multiprocessing", "tkinter", "ctypes"])
def test_every_question_has_an_answer(package: str) -> None:
    """No name, attribute chain, class or function of real files makes the index fail."""
    project = real_project(_files(package))
    assert project.relevant_modules() is not None
    for module in project.all_modules:
        names = {
            dotted_name(n) for n in ast.walk(module.tree) if isinstance(n, (ast.Name, ast.Attribute))
        } - {""}
        for dotted in sorted(names):
            assert type(project.resolve(module, dotted)).__name__.endswith("Symbol")
        for function in module.all_functions:
            assert function.node.name == function.name  # type: ignore[union-attr]
            project.resolve_in_function(function, "self.x.y")
            assert function.params is not None and function.scope is not None
        for cls in module.all_classes:
            assert cls.mro()[0] is cls
            assert cls.external_bases() is not None and cls.self_assignments is not None
        assert module.global_assignments is not None
    assert project.errors == []
