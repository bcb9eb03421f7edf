"""Projects made of texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spmdguard_lint.names.project import Project
from spmdguard_lint.names.symbols import ClassSymbol, ExternalSymbol, FunctionSymbol, ModuleSymbol, Symbol
from spmdguard_lint.source.reading import SourceFile


def source(path: Path | str, text: str) -> SourceFile:
    """A source file with this text; nothing is read."""
    return SourceFile(
        path=Path(path),
        filename=str(path),
        content=text.encode("utf-8", "surrogatepass"),
        encoding="utf-8",
    )


def project_of(
    files: Mapping[str, str], root: str = "/nowhere", extra_markers: tuple[str, ...] = ()
) -> Project:
    """A project of files below ``root``, which need not exist."""
    sources = [source(Path(root) / name, text) for name, text in files.items()]
    return Project.load(sources, extra_markers=extra_markers)


def real_project(paths: list[Path]) -> Project:
    """A project of files that exist."""
    return Project.load([source(path, path.read_text("utf-8")) for path in paths])


def show(symbol: Symbol) -> str:
    """A symbol in one word: kind and name."""
    if isinstance(symbol, FunctionSymbol):
        return f"function {symbol.info.full_name}"
    if isinstance(symbol, ClassSymbol):
        return f"class {symbol.info.full_name}"
    if isinstance(symbol, ModuleSymbol):
        return f"module {symbol.module.name}"
    if isinstance(symbol, ExternalSymbol):
        return f"external {symbol.qualname}"
    return f"{type(symbol).__name__.removesuffix('Symbol').lower()} {symbol.name}"
