"""The order of a checkpoint's steps: what is old goes last, and what names the newest comes when all parts are there.

Terminology: a *part* is a file that every rank writes under a name of its own; a *marker* is a small file by which the
newest or complete checkpoint is found. What is *rotated* is removed to make room for a new checkpoint.
Method: accesses of files with their phases (``traces.files``), and the function's text where names tell what is kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.files import (
    KINDS,
    RANKS,
    Access,
    Components,
    accesses,
    chain,
    components,
    in_open_file,
    inside,
    writes,
)
from ..traces.nodes import Branch, Call, Event, Jump, Loop
from ..values.value import Place, Value, alternatives, is_at, parts_of

if TYPE_CHECKING:
    from ..analysis import Root

SAVES = ("torch.save", "safetensors.torch.save_file", "safetensors.torch.save_model")
SHARDED = "checkpoint-save"
_BY_RANK = frozenset({"rank", "local_rank", "node_rank", "group_rank"})
_MARKERS = re.compile(
    r"latest|newest|tracker|last_?(?:ckpt|checkpoint|step|iter)"
    r"|(?:^|[^a-z])(?:completed?|done|success|commit(?:ted)?|ready|finished)(?:[^a-z]|$)",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(r"(?:^|[^a-z])(?:te?mp|part(?:ial)?)(?:[^a-z]|$)|\.new$", re.IGNORECASE)


_UNDER_WAY = re.compile(
    r"(?:^|[^a-z])(?:unfinished|incomplete|unsafe|dirty|in[_-]?progress|writing|saving|not[_-]?(?:complete|done|ready))"
    r"(?:[^a-z]|$)",
    re.IGNORECASE,
)


class Early(NamedTuple):
    """A step that comes too early, and what it has to wait for."""

    step: Access
    awaited: Access


def marked_early(found: list[Access]) -> Iterator[Early]:
    """Markers that one rank writes, or takes away, while others may still write their parts."""
    parts = [a for a in found if a.kind == "write" and len(a.ranks) == len(RANKS) and _of_one_rank(a)]
    for step in found if parts else ():
        alone = 0 < len(step.ranks) < len(RANKS)
        if not alone or not (_unmarks(step) if step.kind == "remove" else _marks(step)):
            continue
        for part in parts:
            if part.index < step.index and part.races(step):
                yield Early(step, part)
                break


def _of_one_rank(access: Access) -> bool:
    """Whether each rank writes a file of its own."""
    return not in_open_file(access.node) and any(
        part.tag in _BY_RANK for value in _destinations(access) for part in parts_of(value)
    )


def _unmarks(access: Access) -> bool:
    """Whether a file is removed that says, while it is there, that the checkpoint is not whole."""
    texts = [part.data[0] for value in access.values[:1] for part in parts_of(value) if part.tag == "const"]
    return any(_UNDER_WAY.search(text) for text in texts if isinstance(text, str))


def _marks(access: Access) -> bool:
    """Whether a file is written or moved to its place that says which checkpoint is the newest, or whole."""
    return access.kind in ("write", "rename") and marks(access.node)


def puts(node: Event) -> bool:
    """Whether a file is written, opened for writing, or moved to its place."""
    return node.name in ("write", "rename") or (node.name == "open" and writes(node))


def marks(node: Event) -> bool:
    """Whether a small file by whose name the newest checkpoint is found is written, or moved to its place."""
    if in_open_file(node) or node.call.endswith((*SAVES, "save_pretrained")):
        return False
    named = [*node.args, *node.keywords.values()]
    values = [node.receiver, *named] if node.receiver is not None else named
    second = node.name == "rename" or node.call in ("os.symlink", "os.link")
    for value in values[1:2] if second else values[:1]:
        name = [text for text in _texts(components(value)[-1:]) if text]
        if any(map(_MARKERS.search, name)) and not any(map(_UNFINISHED.search, name)):
            return True
    return False


def is_scratch(node: Event) -> bool:
    """Whether what a step works on is no checkpoint that was finished, as its name says."""
    values = [*([node.receiver] if node.receiver is not None else []), *node.args]
    return any(map(_UNFINISHED.search, (text for value in values[:1] for text in _texts(components(value)))))


def _destinations(access: Access) -> list[Value]:
    """The paths that are written to; of a saved object and its path both may be meant."""
    return access.values[1:2] if access.kind == "rename" else access.values


def _texts(parts: object) -> Iterator[str]:
    if isinstance(parts, str):
        yield parts
    elif isinstance(parts, tuple):
        for part in parts:
            yield from _texts(part)


def with_shards(root: Root) -> list[Access]:
    """The accesses of a root, with those that save a checkpoint together."""
    sharded = SHARDED in root.contents.events
    return accesses(root.tree, KINDS | {SHARDED}) if sharded else root.accesses


def removed_early(root: Root) -> Iterator[Early]:
    """Old checkpoints that are removed before the new one is written, in one function or what it calls for that."""
    found = with_shards(root)
    writers = [a for a in found if a.kind == SHARDED or (a.kind == "write" and _saves(a))]
    for step in found if writers else ():
        if step.kind != "remove":
            continue
        after = [w for w in writers if w.index > step.index and _goes_on_to(step, w)]
        before = [w for w in writers if w.index < step.index and _goes_on_to(step, w)]
        if after and not before and _makes_room(step, after[0], _moved_to(after[0], found), root):
            yield Early(step, after[0])


def _saves(access: Access) -> bool:
    return access.node.call.endswith(SAVES)


def _goes_on_to(step: Access, writer: Access) -> bool:
    """Whether a write stands in the same function, or in the one that calls the step for it."""
    around = {(w.node, w.part) for w in chain(writer.where)}
    inner = {(w.node, w.part) for w in chain(step.where)}
    calls = sum(isinstance(node, Call) for node, _ in inner - around)
    return around <= inner and calls <= 1 and bool(step.ranks & writer.ranks)


def _moved_to(writer: Access, found: list[Access]) -> list[Components]:
    """Where what is written is moved afterwards: it was a scratch file or folder."""
    places: list[Components] = []
    for move in found:
        if move.kind == "rename" and move.index > writer.index and move.values:
            sources = [components(one) for one in alternatives(move.values[0])]
            if any(inside(one, path) or inside(path, one) for one in sources for path in writer.paths if one):
                places += move.paths[1:2]
    return places


def _makes_room(step: Access, writer: Access, moved: list[Components], root: Root) -> bool:
    """Whether a removal takes all that was there of what is written then."""
    target = step.paths[0] if step.paths else ()
    if any(map(_UNFINISHED.search, _texts(target))):
        return False
    whole = "rmtree" in step.node.call
    if (
        target
        and not moved
        and any(inside(target, path) if whole else path == target for path in writer.paths)
    ):
        return True
    functions = _functions(root, step.node.place, writer.node.place)
    placed = moved or writer.paths
    if any(map(_keeps_some, functions)) or _keeps_another(step, placed, root):
        return False
    folders = [folder for listing in _listings(step, root) for folder in listing]
    if any(inside(folder, path) for folder in folders for path in placed):
        return True
    return not moved and any(_replaced_by_name(function, step, writer) for function in functions)


def _keeps_another(step: Access, placed: list[Components], root: Root) -> bool:
    """Whether a removal spares a file by a name that is not the new one's, or takes unfinished ones alone."""
    parts = [part for test in _tests(step) for part in parts_of(test)]
    listed = [value for access in _listing(step, root) for value in access.values]
    texts = [part.data[0] for part in (*parts, *listed) if part.tag == "const"]
    if any(_UNFINISHED.search(text) or _UNDER_WAY.search(text) for text in texts if isinstance(text, str)):
        return True
    names = {path[-1] for path in placed if path}
    for part in parts:
        if part.tag == "expr" and part.data[0] in ("==", "!=", "in", "not in"):
            spared = {components(operand)[-1] for operand in part.data[1] if not operand.taint}
            if spared and spared.isdisjoint(names):
                return True
    return False


def _tests(step: Access) -> Iterator[Value]:
    """The conditions under which a file is removed of those that a loop finds, or left by ``continue``."""
    around = list(chain(step.where))
    loop = next((w.node for w in around if isinstance(w.node, Loop)), None)
    for w in around:
        if w.node is loop or loop is None:
            break
        if isinstance(w.node, Branch):
            yield w.node.condition
    for inner in loop.body if loop is not None else ():
        if isinstance(inner, Branch) and any(isinstance(n, Jump) for arm in inner.subtrees() for n in arm):
            yield inner.condition


def _listing(step: Access, root: Root) -> Iterator[Access]:
    """The calls that have found the removed file."""
    places = {taint.place for value in step.values[:1] for taint in value.taint if taint.kind == "filesystem"}
    yield from (a for a in root.accesses if a.kind == "list" and a.node.place in places)


def _listings(step: Access, root: Root) -> Iterator[list[Components]]:
    """The folders in which the removed file was found."""
    for access in _listing(step, root):
        paths = [path for path in access.paths if path]
        by_pattern = access.node.call.startswith("glob.")
        yield [path[:-1] if by_pattern else path for path in paths if len(path) > by_pattern]


def _functions(root: Root, *places: Place) -> list[ast.AST]:
    """The innermost functions of the root's module in which the places stand."""
    found: list[ast.AST] = []
    for place in places:
        around = [
            node
            for node in walk(root.module.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and place.filename == root.module.filename
            and node.lineno <= place.row <= (node.end_lineno or node.lineno)
        ]
        innermost = max(around, key=lambda node: node.lineno, default=None)
        if innermost is not None and innermost not in found:
            found.append(innermost)
    return found


def _keeps_some(function: ast.AST) -> bool:
    """Whether a function counts, or leaves a part of, what it lists: it keeps some of the old files."""
    for node in walk(function):
        if isinstance(node, ast.Slice):
            return True
        if isinstance(node, ast.Compare) and any(
            isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "len"
            for part in walk(node)
        ):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "pop":
            return True
    return False


def _replaced_by_name(function: ast.AST, step: Access, writer: Access) -> bool:
    """Whether the removed path is one that the function remembers, and then is the path that was written."""
    removed, written = _call_at(function, step.node.place), _call_at(function, writer.node.place)
    if removed is None or written is None:
        return False
    receiver = [removed.func.value] if isinstance(removed.func, ast.Attribute) else []
    old = {unparse(part) for part in (*removed.args[:1], *receiver)}
    new = {unparse(part) for part in written.args}
    return any(
        isinstance(node, ast.Assign)
        and node.lineno > written.lineno
        and unparse(node.value) in new
        and any(unparse(target) in old for target in node.targets)
        for node in walk(function)
    )


def _call_at(function: ast.AST, place: Place) -> ast.Call | None:
    return next((node for node in walk(function) if isinstance(node, ast.Call) and is_at(node, place)), None)
