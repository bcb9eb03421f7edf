"""The prefilter's tokens lose no file that can matter, and drop most of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from spmdguard_lint.facts import conventions, lookup
from spmdguard_lint.facts.fact import Fact
from spmdguard_lint.facts.tables import _FAMILIES

from .walk import tables

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
# imported by many files without any training: what communicates in them is marked by its own name
NOT_AS_A_WHOLE = {
    *("torch", "torchvision", "torchdata", "safetensors", "tensorboardX", "evaluate", "peft", "fvcore"),
    *("transformers", "trl", "sentence_transformers", "jax", "nemo", "pytorch_metric_learning"),
    *("detectron2", "ray", "optuna", "optuna_integration"),
}


def marked(text: str) -> bool:
    """Whether the prefilter would let a file with this text pass."""
    return any(token in text.encode() for token in lookup.marker_tokens())


def communicates(fact: Fact) -> bool:
    """Whether a fact alone makes a file matter."""
    return fact.op is not None or fact.varying in ("rank", "group-rank") or bool(fact.main_only)


def test_every_import_of_something_that_matters_is_marked() -> None:
    """A file that imports a communicating function, a rank source or its module by name holds a token."""
    lost = []
    for name, fact in tables().functions.items():
        owner, _, last = name.rpartition(".")
        if communicates(fact) and fact.certainty == "definite" and not fact.when_sharded and owner:
            for text in (f"from {owner} import {last}\n", f"import {owner} as x\nx.{last}(a)\n"):
                if not marked(text):
                    lost.append(text)
    assert lost == []


def test_every_framework_type_is_marked() -> None:
    """A file that makes an instance of a type with collective methods holds a token."""
    lost = []
    for name, facts in tables().types.items():
        members = [*facts.methods.values(), *facts.attributes.values(), *([facts.call] if facts.call else [])]
        owner, _, last = name.rpartition(".")
        matters = any(communicates(fact) for fact in members) and not last.startswith("Prepared")
        if matters and not marked(f"from {owner} import {last}\n"):
            lost.append(name)
    assert lost == []


@pytest.mark.parametrize("root", sorted(set(_FAMILIES) - NOT_AS_A_WHOLE))
def test_every_framework_root_is_marked(root: str) -> None:
    """``import framework.part`` alone lets a file pass, since anything may follow."""
    assert marked(f"import {root}.part\nfrom {root}.part import name\n")


def test_conventional_names_are_marked_where_they_decide() -> None:
    """Tests of a conventional name, environment variables and distinctive methods hold a token."""
    lost = [
        name
        for name, (_, _, fact) in conventions.UNKNOWN_METHODS.items()
        if communicates(fact) and not marked(f"x.{name}(y)\n")
    ]
    lost += [name for name in conventions.UNKNOWN_ATTRIBUTES if not marked(f"if x.{name}:\n")]
    lost += [
        name
        for name, fact in conventions.ENVIRONMENT.items()
        if fact.varying == "rank" and not marked(f'os.environ["{name}"]\n')
    ]
    lost += [
        name
        for name, fact in conventions.NAMES.items()
        if fact.certainty != "possible" and not marked(f"if {name} == 0:\n")
    ]
    assert lost == []


def test_weak_names_are_marked_in_the_shapes_that_count() -> None:
    """``rank`` in a comparison or a condition passes; a LoRA rank, a ranking and broadcasting do not."""
    for text in ("if rank == 0:\n", "x = a if rank == 0 else b\n", "main = rank == 0\n", "if not rank:\n"):
        assert marked(text)
    for text in ("self.lora_rank = 8\n", "ranking = sort(scores)\n", "# broadcasting\n", "rank_me(x)\n"):
        assert not marked(text)


def test_ordinary_files_are_not_marked() -> None:
    """Model code, data code and plain scripts are dropped."""
    text = (
        "import torch\nfrom torch import nn\nimport numpy as np\n"
        "class Block(nn.Module):\n    def forward(self, x):\n        return x + self.up(self.down(x))\n"
    )
    assert not marked(text)


def test_every_example_is_marked() -> None:
    """The scripts of the documentation are all read."""
    if not EXAMPLES.is_dir():
        pytest.skip("the examples are not there yet")
    assert [p.name for p in sorted(EXAMPLES.rglob("*.py")) if not marked(p.read_text())] == []
