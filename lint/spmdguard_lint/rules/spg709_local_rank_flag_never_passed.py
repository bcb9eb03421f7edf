"""
# local-rank-flag-never-passed (SPG709)

## What it does
Finds command-line flags for the local rank (`--local_rank`) with a constant default, in programs that `torchrun`
starts and in which nothing reads `LOCAL_RANK`.

## Why is this bad
`torchrun` and `accelerate launch` tell a process its local rank in the environment variable `LOCAL_RANK`, and pass
no such flag. It keeps its default in every process: all of a host use the first device, and each takes itself for
the one that logs and saves.

## Example
```python
\"\"\"torchrun --nproc-per-node 8 train.py\"\"\"
import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)


def main():
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl")
    dist.destroy_process_group()
```

## Use instead
```python
\"\"\"torchrun --nproc-per-node 8 train.py\"\"\"
import os

import torch
import torch.distributed as dist


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    dist.destroy_process_group()
```

## Known limits
DeepSpeed's launcher and `torch.distributed.launch` pass the flag: where the program or a file that it imports names
one of them, there is no report. Where it takes nothing else from the environment and does not name `torchrun`, the
finding is of certainty `possible`. A project's own launcher is known by the flag in its command.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/elastic/run.html#transitioning-from-torch-distributed-launch-to-torchrun
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spmdguard_lint.rules.registry import rule

from ..names.dotted import called_name
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Node
from ..values.value import place_of
from .support_events import finding
from .support_imports import program_text

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..model import Certainty, Finding
    from ..names.modules import Module

RULE = rule(
    code="SPG709", name="local-rank-flag-never-passed", severity="warning", status="stable", page=__doc__
)
HELP = 'take it from the environment: `int(os.environ["LOCAL_RANK"])`, as the flag\'s default or in its place'
_FLAG = re.compile(r"--local[-_]rank$")
_NAME = "local_rank"
_DECLARES = frozenset({"add_argument", "option", "Option", "DEFINE_integer"})
# The local rank comes from elsewhere, or from a launcher that passes the flag.
_KNOWN = re.compile(
    rb"LOCAL_RANK|LOCALID|LOCALRANK|LOCAL_PROCESS|get_local_rank|get_node_local_rank|local_process_index"
    rb"|\b(?:args|opts?|cfg|config|flags|FLAGS|hparams)\.local_rank\s*=[^=]"
    rb"|[dD]eep[sS]peed|distributed\.launch\b|--local[-_]rank[= {]|\.spawn\(|start_processes"
)
_STARTED = re.compile(rb"\btorchrun\b|accelerate launch|distributed\.run\b")
_ENVIRONMENT = re.compile(rb"""env://|["'](?:WORLD_SIZE|RANK|MASTER_ADDR|TORCHELASTIC_\w+)["']""")
_GROUP = re.compile(rb"init_process_group|DistributedDataParallel|init_distributed")
_ARGUMENTS = frozenset({"args", "opt", "opts", "config", "cfg", "FLAGS"})
_HELPER = re.compile(r"init|setup|dist|launch|device")


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report flags for the local rank that no launcher passes."""
    for module in analysis.project.relevant_modules():
        content = module.source.content
        if b"local" not in content or not re.search(rb"--local[-_]rank|[\"']local_rank[\"']", content):
            continue
        flags = [flag for flag in _flags(module.tree) if not (_unset(flag) and _does_without(module.tree))]
        if not flags or not _decides(module.tree):
            continue
        text = program_text(module, analysis.project)
        if (
            _KNOWN.search(_without(text, flags))
            or not _GROUP.search(text)
            or _set_otherwise(module.tree, text)
        ):
            continue
        certainty: Certainty = "likely" if _STARTED.search(text) or _ENVIRONMENT.search(text) else "possible"
        for flag in flags:
            yield _finding(module, flag, certainty)


def _flags(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that declare a flag for the local rank, with a default that is a constant."""
    for node in walk(tree):
        if not isinstance(node, ast.Call) or called_name(node) not in _DECLARES:
            continue
        names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        defined = called_name(node) == "DEFINE_integer" and names[:1] == [_NAME]
        if not defined and not any(_FLAG.match(name) for name in names):
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        default = given.get("default") or (node.args[1] if defined and len(node.args) > 1 else None)
        required = given.get("required")
        if isinstance(required, ast.Constant) and required.value:
            continue
        if default is None or _constant(default):
            yield node


def _unset(flag: ast.Call) -> bool:
    """Whether a flag is None where it is not passed."""
    given = next((k.value for k in flag.keywords if k.arg == "default"), None)
    return given is None or (isinstance(given, ast.Constant) and given.value is None)


def _does_without(tree: ast.AST) -> bool:
    """Whether a device is chosen first, and the flag takes its place where it is there."""
    for node in walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and _reads(node.test):
            there = isinstance(node.test.ops[0], ast.IsNot) and not node.orelse
            if there and any(isinstance(one, ast.Assign) and _reads(one.value) for one in node.body):
                return True
    return False


def _constant(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _constant(node.operand)
    return isinstance(node, ast.Constant)


def _reads(node: ast.AST) -> bool:
    """Whether an expression is the local rank, or holds it: ``args.local_rank``, ``f"cuda:{args.local_rank}"``."""
    for part in walk(node):
        if isinstance(part, ast.Attribute) and part.attr == _NAME and isinstance(part.ctx, ast.Load):
            return True
        if isinstance(part, ast.Name) and part.id == _NAME and isinstance(part.ctx, ast.Load):
            return True
        if (
            isinstance(part, ast.Subscript)
            and isinstance(part.slice, ast.Constant)
            and part.slice.value == _NAME
        ):
            return True
    return False


def _decides(tree: ast.AST) -> bool:
    """Whether the local rank decides about a device, or about who does the work of one process."""
    for node in walk(tree):
        if isinstance(node, ast.Compare):
            if _reads(node):
                return True
        elif isinstance(node, ast.JoinedStr):
            if "cuda" in unparse(node) and _reads(node):
                return True
        elif isinstance(node, ast.Call):
            named = [k.value for k in node.keywords if k.arg in ("device_ids", "output_device", "device")]
            if called_name(node) in ("set_device", "device", "cuda", "to"):
                named.extend(node.args)
            if any(_reads(value) for value in named):
                return True
    return False


def _set_otherwise(tree: ast.AST, text: bytes) -> bool:
    """Whether the program computes the local rank, or lets a library's helper do so with the arguments at hand."""
    for node in walk(tree):
        if isinstance(node, ast.Assign):
            if (
                not _constant(node.value)
                and not _reads(node.value)
                and any(map(_is_local_rank, node.targets))
            ):
                return True
        elif isinstance(node, ast.Call) and _HELPER.search(called_name(node).lower()):
            handed = (a.id for a in node.args if isinstance(a, ast.Name))
            own = re.search(rf"\b(?:def|class) {called_name(node)}\b".encode(), text)
            if own is None and any(name in _ARGUMENTS for name in handed):
                return True
    return False


def _is_local_rank(target: ast.expr) -> bool:
    return _NAME in (getattr(target, "attr", ""), getattr(target, "id", ""))


def _without(text: bytes, flags: list[ast.Call]) -> bytes:
    """The text without the declarations of the flags themselves."""
    for flag in flags:
        for part in flag.args:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                for quote in "\"'":
                    text = text.replace(f"{quote}{part.value}{quote}".encode(), b"")
    return text


def _finding(module: Module, flag: ast.Call, certainty: Certainty) -> Finding:
    place = place_of(module.filename, flag)
    name = next((str(a.value) for a in flag.args if isinstance(a, ast.Constant)), _NAME)
    message = f"`{name}` is passed by no launcher of this program, and keeps its default in every process"
    return finding(RULE, Node(place), message, HELP, certainty=certainty)
