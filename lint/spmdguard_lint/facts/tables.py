"""All families put together: one dict per kind of fact, filled once at import."""

from __future__ import annotations

from types import ModuleType

from . import (
    files,
    spmdguard_api,
    stdlib,
    torch_checkpoint,
    torch_core,
    torch_distributed,
    torch_functional,
    torch_parallel,
)
from .fact import Fact, TypeFacts

_FAMILIES: tuple[ModuleType, ...] = (
    torch_distributed,
    torch_functional,
    torch_parallel,
    torch_checkpoint,
    torch_core,
    stdlib,
    files,
    spmdguard_api,
)

FUNCTIONS: dict[str, Fact] = {}
TYPES: dict[str, TypeFacts] = {}
CONSTANTS: dict[str, Fact] = {}
ALIASES: dict[str, str] = {}
PREFIXES: dict[str, str] = {}
LOOSE_ROOTS: tuple[str, ...] = ()
CLASS_PATTERNS: tuple[tuple[str, str, str], ...] = ()
MIDDLES: tuple[tuple[str, Fact], ...] = ()

for _family in _FAMILIES:
    FUNCTIONS.update(getattr(_family, "FUNCTIONS", {}))
    TYPES.update(getattr(_family, "TYPES", {}))
    CONSTANTS.update(getattr(_family, "CONSTANTS", {}))
    ALIASES.update(getattr(_family, "ALIASES", {}))
    PREFIXES.update(getattr(_family, "PREFIXES", {}))
    LOOSE_ROOTS += getattr(_family, "LOOSE_ROOTS", ())
    CLASS_PATTERNS += getattr(_family, "CLASS_PATTERNS", ())
    MIDDLES += getattr(_family, "MIDDLES", ())

MARKERS: tuple[bytes, ...] = (
    b"distributed",
    b"rank",
    b"RANK",
    b"barrier",
    b"main_process",
)
