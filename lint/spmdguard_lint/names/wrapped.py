"""Names that a module gives to models, optimizers and engines whose calls communicate, found in its text.

``self.head = FSDP(head)``, ``model, optimizer = accelerator.prepare(model, optimizer)``, ``fully_shard(block)``:
a function that calls one of these names, or runs a backward pass in a module that has such a name, reaches a
collective although no collective is called by name. Cost: one regular expression over the text, once per module.
"""

from __future__ import annotations

import re

_SURE = (
    "FSDP|DDP|FullyShardedDataParallel|DistributedDataParallel|DistributedModelParallel|fully_shard|replicate"
    "|convert_sync_batchnorm|deepspeed\\.initialize|accelerator\\.prepare(?:_model)?|fabric\\.setup(?:_module)?"
    "|get_forward_backward_func"
)
_TARGET = r"\*?[\w.]+"  # ``engine, *_ = ...``
_ASSIGNED = re.compile(
    rf"^[ \t]*(?P<targets>{_TARGET}(?:[ \t]*,[ \t]*{_TARGET})*)[ \t]*(?::[^=\n]+)?=[ \t]*(?:[\w.]+\.)?\b(?:{_SURE})\(",
    re.MULTILINE,
)
_IN_PLACE = re.compile(r"\b(?:fully_shard|replicate|parallelize_module)\(\s*(?P<target>[\w.]+)")
_PARTS = (
    "DDP",
    "FSDP",
    "Parallel",
    "fully_shard",
    "replicate",
    "sync_batch",
    "deepspeed",
    ".prepare",
    ".setup",
    "parallelize_module",
    "get_forward_backward_func",
)
"""One of these stands in every text that wraps something: looking for them is cheap."""
_PASSIVE = frozenset({"_", "self", "optimizer", "opt", "loader", "scheduler"})


def wrapped_names(text: str) -> frozenset[str]:
    """The last names of what the text of a module wraps."""
    if not any(part in text for part in _PARTS):
        return frozenset()
    found: set[str] = set()
    for match in _ASSIGNED.finditer(text):
        targets = (target.strip() for target in match.group("targets").split(","))
        found.update(target.rpartition(".")[2] for target in targets if not target.startswith("*"))
    for match in _IN_PLACE.finditer(text):
        found.add(match.group("target").rpartition(".")[2])
    return frozenset(found - _PASSIVE)
