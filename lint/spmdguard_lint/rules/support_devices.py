"""Programs of an NCCL group in which nothing ever says which device a rank has.

Terminology: a program *binds* a device where it names one by number, or leaves it to something that does (a framework,
a launcher that shows each process one device). It *takes the default* where it asks for ``cuda`` and says no more: that
is device 0 for every rank of a host. Cost: a few searches in the text of the program's files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..traces.nodes import Event, every_node
from .support_events import argument, reading
from .support_imports import program_text

if TYPE_CHECKING:
    from ..analysis import Analysis

_BINDS = re.compile(
    rb"set_device|device_id|device_index|device_mesh|VISIBLE_DEVICES|cuda:(?!nccl)|with torch\.cuda\.device"
    rb"|device_count|\bcuda\([^)\s]|torch\.device\([^)]*,|\.to\([^)]*(?:rank|local|gpu)|ordinal|import_module|set_default_device"
)
_LEFT_TO_OTHERS = re.compile(
    rb"^\s*(?:from|import) +(?:accelerate|lightning|pytorch_lightning|lightning_fabric|deepspeed|transformers|ignite"
    rb"|composer|megatron|colossalai|ray|horovod|fairscale|mmengine|mmcv|monai|torchtitan|spmdguard\.integrations"
    rb"|apex|bagua|xformers|vllm|catalyst|determined|sagemaker|smdistributed)\b",
    re.MULTILINE,
)
_DEFAULT = re.compile(rb"\.cuda\(\s*\)|[\"']cuda[\"']|torch\.cuda\.current_device\(\)")
_SEVERAL_A_HOST = re.compile(rb"LOCAL_RANK|torchrun|nproc|spawn\(")


def never_bound(analysis: Analysis) -> Iterator[Event]:
    """Where groups of NCCL are made in programs that take the default device on every rank of a host."""
    for root in reading(analysis):
        if "init" not in root.contents.events or "set-device" in root.contents.events:
            continue
        groups = [node for node in every_node(root.tree) if isinstance(node, Event) and node.name == "init"]
        if not any(map(is_nccl, groups)):
            continue
        text = program_text(root.module, analysis.project)
        if not (_DEFAULT.search(text) and _SEVERAL_A_HOST.search(text)):
            continue
        if not (_BINDS.search(text) or _LEFT_TO_OTHERS.search(text)):
            yield from filter(is_nccl, groups)


def is_nccl(node: Event) -> bool:
    """Whether a group is made with NCCL and without a device."""
    backend = argument(node, 0, "backend")
    named = backend is not None and backend.tag == "const" and "nccl" in str(backend.data[0])
    return named and "device_id" not in node.keywords
