"""
# rendezvous-file-left-behind (SPG710)

## What it does
Finds groups that meet through a file (`init_method="file://..."`, `FileStore`) whose name is the same for each job,
and that nothing removes beforehand.

## Why is this bad
The file is removed when the job ends well. A job that was killed, or in which a rank died, leaves it behind with
the entries of its processes. The next job reads them: it waits for ranks that are gone, or takes their addresses
for those of its own ranks, and hangs or fails in its first collective.

## Example
```python
import torch.distributed as dist


def join(rank, world_size, shared):
    dist.init_process_group(
        "nccl", init_method=f"file://{shared}/rendezvous", rank=rank, world_size=world_size
    )
    dist.destroy_process_group()
```

## Use instead
Let every start have a name of its own:

```python
import os

import torch.distributed as dist


def join(rank, world_size, shared):
    start = f"{os.environ['SLURM_JOB_ID']}-{os.environ.get('SLURM_RESTART_COUNT', 0)}"
    dist.init_process_group(
        "nccl", init_method=f"file://{shared}/rendezvous-{start}", rank=rank, world_size=world_size
    )
    dist.destroy_process_group()
```

or meet over TCP, which leaves nothing behind.

## Known limits
A file whose name is a parameter or comes out of a setting is taken for one of this start alone, and so is a folder
that is temporary or named after a job, a run or a date. A removal in the same file of code counts wherever it
stands, unless it follows in the same flow. A `FileStore` is seen where it is handed to `init_process_group`.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#shared-file-system-initialization
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from spmdguard_lint.rules.registry import rule

from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.files import parts_of, preorder
from ..traces.nodes import Event, Node, every_node
from ..values.value import Place, Value, is_at, place_of
from .support_events import argument, finding

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..model import Finding
    from ..names.modules import Module

RULE = rule(
    code="SPG710", name="rendezvous-file-left-behind", severity="warning", status="stable", page=__doc__
)
HELP = "put what only this start has into the name, such as the number of the job and of its restart"
_OWN = re.compile(
    r"job|restart|uuid|mkdtemp|mkstemp|te?mp|time|date|pid|random|token|hex|attempt|run|uniq|session|port|(?:^|_)id$|seed",
    re.IGNORECASE,
)
_SAME = frozenset(
    {"str", "call:resolve", "call:absolute", "call:expanduser", "call:as_posix", "call:os.fspath"}
) | {f"call:os.path.{name}" for name in ("abspath", "expanduser", "realpath", "normpath", "expandvars")}
_REMOVES = re.compile(r"\b(?:unlink|remove|rmtree)\(")
_HOLE = re.compile(r"\{[^{}]*\}")
_PERCENT = re.compile(r"%[sdr]")
Piece = str | Value


def check(analysis: Analysis) -> Iterable[Finding]:
    """Report fixed files through which a group meets."""
    done: set[Place] = set()
    for root in analysis.roots:
        if "init" not in root.contents.events:
            continue
        for node in every_node(root.tree):
            meeting = _meeting(node) if isinstance(node, Event) and node.name == "init" else None
            if meeting is None or node.place in done or not _is_fixed(meeting.pieces):
                continue
            module = analysis.project.by_filename[node.place.filename]
            if not _is_removed(root, meeting, module):
                done.add(node.place)
                yield _finding(module, meeting)


class _Meeting(NamedTuple):
    """A group that meets through a file: where the file is given, and the pieces of its path."""

    init: Event
    position: int
    keyword: str
    pieces: list[Piece]


def _meeting(node: Event) -> _Meeting | None:
    """The file through which a group meets, if it meets through one."""
    method = argument(node, 1, "init_method")
    if method is not None:
        first, *rest = list(pieces_of(method)) or [""]
        if isinstance(first, str) and first.startswith("file:"):
            return _Meeting(node, 1, "init_method", [first.removeprefix("file:").lstrip("/"), *rest])
        return None
    store = node.keywords.get("store")
    if store is not None and store.tag == "extobj" and store.data[0] == "torch.distributed.FileStore":
        path = store.data[2]
        return None if path is None else _Meeting(node, -1, "store", list(pieces_of(path)))
    return None


def pieces_of(value: Value) -> Iterator[Piece]:
    """A text or path as its constant pieces and what stands between them."""
    if value.tag == "const":
        yield str(value.data[0])
    elif value.tag == "extobj" and value.data[0] == "pathlib.Path" and isinstance(value.data[2], Value):
        yield from pieces_of(value.data[2])
    elif value.tag != "expr":
        yield value
    elif value.data[0] in _SAME or value.data[0] == "call:as_uri":
        if value.data[0] == "call:as_uri":
            yield "file://"
        yield from pieces_of(value.data[1][0])
    elif value.data[0] in ("format", "+"):
        for part in value.data[1]:
            yield from pieces_of(part)
    elif value.data[0] in ("/", "call:os.path.join", "call:joinpath"):
        for index, part in enumerate(value.data[1]):
            if index:
                yield "/"
            yield from pieces_of(part)
    elif value.data[0] in ("call:format", "%") and value.data[1][0].tag == "const":
        template, *given = value.data[1]
        holes = _HOLE if value.data[0] == "call:format" else _PERCENT
        texts = holes.split(str(template.data[0]))
        for index, text in enumerate(texts):
            yield text
            if index < len(texts) - 1:
                yield from pieces_of(given[index]) if index < len(given) else iter((value,))
    else:
        yield value


def _is_fixed(pieces: list[Piece]) -> bool:
    """Whether the file's own name is constant, and nothing in its folder belongs to one start alone."""
    last = pieces[-1]
    joined = "".join(piece if isinstance(piece, str) else "\0" for piece in pieces)
    if not isinstance(last, str) or "\0" in joined.rpartition("/")[2] or not joined.rpartition("/")[2]:
        return False
    return not any(_is_own(piece) for piece in pieces if isinstance(piece, Value))


def _is_own(piece: Value) -> bool:
    if piece.tag == "sym" and piece.data[0][:1] == ("entered",):  # a temporary folder, mostly
        return True
    if any(taint.kind != "filesystem" for taint in piece.taint):
        return True
    return any(_OWN.search(name) for part in parts_of(piece) for name in _names(part))


def _names(part: Value) -> Iterator[str]:
    """What a symbol or an operation is called."""
    if part.tag == "expr":
        yield str(part.data[0])
    elif part.tag in ("sym", "extobj"):
        label = part.data[0] if part.tag == "sym" else part.data[1]
        if isinstance(label, tuple):
            yield str(
                label[-1]
                if label[:1] in (("param",), ("environ",), ("field",), ("param-none",))
                else label[0]
            )


def _is_removed(root: Root, meeting: _Meeting, module: Module) -> bool:
    """Whether the file, or a folder around it, is removed: before it in its own flow, or in another function."""
    if "remove" in root.contents.events:
        wanted, order = _components(meeting.pieces), preorder(root.tree)
        for node in every_node(root.tree):
            if isinstance(node, Event) and node.name == "remove" and order[node] < order[meeting.init]:
                named = node.receiver if node.receiver is not None else (node.args[0] if node.args else None)
                removed = _components(list(pieces_of(named))) if named is not None else ()
                if removed and (removed == wanted[: len(removed)] or removed[-1] == wanted[-1]):
                    return True
    return _removed_elsewhere(meeting, module)


def _removed_elsewhere(meeting: _Meeting, module: Module) -> bool:
    """Whether another function of the file removes something, and speaks of the name or the constant that holds it."""
    given = argument_of(module, meeting)
    words = [str(meeting.pieces[-1]).rpartition("/")[2]]
    if given is not None:
        words.extend(node.id for node in walk(given) if isinstance(node, ast.Name))
    spoken = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in words))
    for function in module.all_functions:
        first, last = function.header.lineno, function.header.end_lineno or function.header.lineno
        elsewhere = not first <= meeting.init.place.row <= last
        if elsewhere and _REMOVES.search(function.text) and spoken.search(function.text):
            return True
    return False


def _components(pieces: list[Piece]) -> tuple[Hashable, ...]:
    """The parts of a path, comparable."""
    found: list[list[Hashable]] = [[]]
    for piece in pieces:
        if isinstance(piece, Value):
            found[-1].append(piece.key)
            continue
        first, *others = piece.split("/")
        found[-1].extend([first] if first else [])
        found.extend([part] if part else [] for part in others)
    return tuple(tuple(component) for component in found if component)


def _finding(module: Module, meeting: _Meeting) -> Finding:
    init = meeting.init
    given = argument_of(module, meeting)
    place, text = init.place, init.text
    if given is not None:
        place, text = place_of(module.filename, given), unparse(given)
    message = f"`{text}` is the same file in each job, and one that died leaves its entries there"
    steps = [(init.place, f"`{init.text}` is where the ranks meet")] if given is not None else []
    return finding(RULE, Node(place), message, HELP, steps=steps)


def argument_of(module: Module, meeting: _Meeting) -> ast.expr | None:
    """The expression by which a group is told of its file."""
    call = meeting.init.place
    for node in walk(module.tree):
        if isinstance(node, ast.Call) and is_at(node, call):
            given = next((k.value for k in node.keywords if k.arg == meeting.keyword), None)
            if given is None and 0 <= meeting.position < len(node.args):
                given = node.args[meeting.position]
            if given is not None:
                return given
    return None
