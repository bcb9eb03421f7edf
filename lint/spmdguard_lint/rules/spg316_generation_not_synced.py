"""
# generation-not-synced (SPG316)

## What it does
Finds `generate(...)` without `synced_gpus` of a model that `deepspeed.initialize` has sharded by ZeRO-3.

## Why is this bad
Each token is a forward pass, and each forward pass gathers the parameters from all ranks. A rank whose own sequences
have ended stops generating; the others wait for its part of the next layer. How many tokens a rank generates depends on
its prompts, so the run hangs sooner or later. transformers goes on with empty passes by itself only where it knows of
ZeRO-3: by a live `HfDeepSpeedConfig`, which its `Trainer` and `accelerate` make, and `deepspeed.initialize` does not.

## Example
```python
import deepspeed

CONFIG = {"train_batch_size": 8, "zero_optimization": {"stage": 3}}


def rollout(model, prompts):
    engine, *_ = deepspeed.initialize(model=model, config=CONFIG)
    return engine.module.generate(input_ids=prompts, max_new_tokens=256)
```

## Use instead
```python
import deepspeed

CONFIG = {"train_batch_size": 8, "zero_optimization": {"stage": 3}}


def rollout(model, prompts):
    engine, *_ = deepspeed.initialize(model=model, config=CONFIG)
    return engine.module.generate(input_ids=prompts, max_new_tokens=256, synced_gpus=True)
```

## Known limits
By the text of the program: the stage must be written in it, the call be one of `x.module.generate` or of what
`deepspeed.initialize` has returned in the same file. Programs that use `accelerate`, `trl`, `TrainingArguments`,
`HfDeepSpeedConfig`, the hybrid engine or `GatheredParameters` are left alone, and so are calls with a smallest length
or with `**options`.

## Fix safety
No fix.

## References
- [deepspeedai/DeepSpeedExamples#636](https://github.com/deepspeedai/DeepSpeedExamples/issues/636)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..names.dotted import called_name, dotted_name
from ..names.symbols import ExternalSymbol
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Event
from ..values.value import place_of
from .registry import rule
from .support_imports import program_of
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(code="SPG316", name="generation-not-synced", severity="error", status="stable", page=__doc__)
HELP = "pass `synced_gpus=True`: a rank that has ended goes on with empty passes until all have"
_STAGE_3 = re.compile(rb"[\"']stage[\"']\s*:\s*3\b")
_TOLD = re.compile(
    rb"HfDeepSpeedConfig|TrainingArguments|(?:from|import) trl\b|[Aa]ccelerate"
    rb"|hybrid_engine|GatheredParameters|init_inference"
)
_SYNCED = frozenset({"synced_gpus", "min_new_tokens", "min_length"})
_OF_LENGTH = frozenset({"max_new_tokens", "max_length", "input_ids", "attention_mask", "generation_config"})


def check(analysis: Analysis) -> Iterable[Finding]:
    """Calls of ``generate`` in programs with engines of stage 3, of which transformers has not been told."""
    for module in analysis.project.relevant_modules():
        content = module.source.content
        if b".generate(" not in content or b"deepspeed" not in content:
            continue
        texts = [one.asked for one in program_of(module, analysis.project)]
        begun = any(text.contains(b"deepspeed.initialize") for text in texts)
        sharded = begun and any(text.matches(_STAGE_3) for text in texts)
        if sharded and not any(text.matches(_TOLD) for text in texts):
            yield from _calls(module)


def _calls(module: Module) -> Iterator[Finding]:
    engines = set(_engines(module))
    for node in walk(module.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr == "generate" and _is_engine(node.func.value, engines) and _ends_alone(node):
            text = f"{unparse(node.func)}(...)"
            message = f"`{text}` ends on each rank with its own sequences; the others wait for its shards"
            event = Event(place_of(module.filename, node), "generate", text)
            yield finding_at(RULE, event, message, HELP, certainty="likely")


def _engines(module: Module) -> Iterator[str]:
    """What the results of ``deepspeed.initialize`` are called in a file."""
    for node in walk(module.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if called_name(node.value) != "initialize":
            continue
        symbol = module.project.resolve(module, dotted_name(node.value.func))
        if isinstance(symbol, ExternalSymbol) and symbol.qualname.startswith("deepspeed."):
            for target in node.targets:
                first = target.elts[0] if isinstance(target, (ast.Tuple, ast.List)) else target
                yield unparse(first)


def _is_engine(receiver: ast.expr, engines: set[str]) -> bool:
    """Whether something is an engine of the file, or what an engine wraps."""
    unwrapped = isinstance(receiver, ast.Attribute) and receiver.attr == "module"
    return unwrapped or unparse(receiver) in engines


def _ends_alone(node: ast.Call) -> bool:
    """Whether a call is one of a language model's, whose sequences end where each rank's do."""
    names = {keyword.arg for keyword in node.keywords}
    return None not in names and not names & _SYNCED and bool(names & _OF_LENGTH or node.args)
