"""The families of facts, each read when a name of one of its packages is first asked for.

A *family* is a module of this folder that holds some of the dicts below; its *roots* are the top packages of
its names. A project that never mentions Horovod never pays for its table.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .fact import Fact, TypeFacts

_TORCH = ("torch_distributed", "torch_functional", "torch_parallel", "torch_checkpoint", "torch_core")
_PLAIN = ("stdlib", "files")  # the standard library and every package that has no family of its own

_FAMILIES: dict[str, tuple[str, ...]] = {
    "torch": _TORCH,
    "torchvision": _TORCH,
    "torchdata": _TORCH,
    "safetensors": _TORCH,
    "tensorboardX": _TORCH,
    "spmdguard": ("spmdguard_api",),
    "accelerate": ("accelerate",),
    "lightning": ("lightning",),
    "pytorch_lightning": ("lightning",),
    "lightning_fabric": ("lightning",),
    "lightning_utilities": ("lightning",),
    "transformers": ("transformers",),
    "trl": ("transformers",),
    "peft": ("transformers",),
    "sentence_transformers": ("transformers",),
    "torchmetrics": ("transformers",),
    "evaluate": ("transformers",),
    "deepspeed": ("deepspeed",),
    "megatron": ("megatron",),
    "torchtune": ("frameworks",),
    "torchtitan": ("frameworks",),
    "composer": ("frameworks",),
    "mmengine": ("frameworks",),
    "mmcv": ("frameworks",),
    "nemo": ("frameworks",),
    "detectron2": ("frameworks",),
    "fvcore": ("frameworks",),
    "pytorch_metric_learning": ("frameworks",),
    "optuna": ("searches",),
    "optuna_integration": ("searches",),
    "horovod": ("launchers",),
    "ignite": ("launchers",),
    "torch_xla": ("launchers",),
    "mpi4py": ("launchers",),
    "ray": ("launchers",),
    "jax": ("launchers",),
}


class Tables:
    """The families read so far, as one dict per kind of fact."""

    def __init__(self) -> None:
        self.functions: dict[str, Fact] = {}
        self.types: dict[str, TypeFacts] = {}
        self.constants: dict[str, Fact] = {}
        self.aliases: dict[str, str] = {}
        self.prefixes: dict[str, str] = {}
        self.loose_roots: tuple[str, ...] = ()
        self.class_patterns: tuple[tuple[str, str, str], ...] = ()
        self.prefix_facts: tuple[tuple[str, Fact], ...] = ()
        self._read: set[str] = set()

    def need(self, root: str) -> None:
        """Read the families that know names below the top package ``root``."""
        for family in _FAMILIES.get(root, _PLAIN):
            if family not in self._read:
                self._add(family)

    def need_all(self) -> None:
        """Read every family."""
        for root in ("", *_FAMILIES):
            self.need(root)

    def _add(self, family: str) -> None:
        self._read.add(family)
        module = import_module(f"{__package__}.{family}")
        whole: tuple[tuple[str, dict[str, Any]], ...] = (
            ("FUNCTIONS", self.functions),
            ("TYPES", self.types),
            ("CONSTANTS", self.constants),
            ("ALIASES", self.aliases),
            ("PREFIXES", self.prefixes),
        )
        for name, known in whole:
            known.update(getattr(module, name, {}))
        self.loose_roots += getattr(module, "LOOSE_ROOTS", ())
        self.class_patterns += getattr(module, "CLASS_PATTERNS", ())
        self.prefix_facts += getattr(module, "PREFIX_FACTS", ())


TABLES = Tables()


def every_function() -> dict[str, Fact]:
    """The facts on all functions of all families."""
    TABLES.need_all()
    return TABLES.functions


def __getattr__(name: str) -> dict[str, Fact]:
    if name == "FUNCTIONS":  # all of them: whoever iterates wants no part left out
        return every_function()
    raise AttributeError(name)
