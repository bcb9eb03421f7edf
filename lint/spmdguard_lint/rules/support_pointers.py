"""Pointers to a checkpoint that is not yet where they point.

Terminology: a *pointer* is a small file, or a link, by which the newest checkpoint is found (``latest``); it *names*
the path or the text that is written into it, or that the link leads to. A checkpoint is *put* where it is written or
moved under its name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from ..traces.files import Access, Components, chain, components, file_of
from ..traces.nodes import Call
from ..values.value import Value, alternatives, is_const, parts_of
from .support_phases import SAVES, SHARDED, Early, marks, with_shards

if TYPE_CHECKING:
    from ..analysis import Root


def pointed_early(root: Root) -> Iterator[Early]:
    """Pointers that are moved to a checkpoint before the same rank has put it there."""
    pointers = [a for a in root.accesses if a.kind in ("write", "rename") and marks(a.node) and a.paths]
    found = with_shards(root) if pointers else []
    for step in pointers:
        named = set(_named(step, found))
        puts = [a for a in found if _puts(a) and a.node is not step.node and not named.isdisjoint(_words(a))]
        moved = {a.paths[0] for a in found if a.kind == "rename" and a.paths}
        if any(a.index < step.index and moved.isdisjoint(a.paths) for a in puts):
            continue
        later = [a for a in puts if a.index > step.index and _goes_on_to(step, a)]
        if later:
            yield Early(step, later[0])


def _named(step: Access, found: list[Access]) -> Iterator[Hashable]:
    """What a pointer names: its contents, those of the file that is moved to its place, or its target."""
    call = step.node.call
    if call in ("os.symlink", "os.link"):
        yield from _last_words(step.values[:1])
    elif call.endswith((".symlink_to", ".hardlink_to")):
        yield from _last_words(step.values[1:2])
    else:
        yield from _contents(step.paths[0], found)


def _contents(file: Components, found: list[Access]) -> Iterator[Hashable]:
    for access in found:
        if access.kind == "write" and file in access.paths:
            for value in (*access.node.args, *access.node.keywords.values()):
                if file_of(value) is not value or components(value) == file:
                    continue
                yield from _last_words([value])
                yield from (part.key for part in parts_of(value) if not is_const(part))


def _puts(access: Access) -> bool:
    """Whether a checkpoint is written, or moved to its place."""
    writes = access.kind in ("rename", SHARDED) or access.node.call.endswith(SAVES)
    return writes and not marks(access.node)


def _words(put: Access) -> Iterator[Hashable]:
    yield from _last_words(put.values[1:2] if put.kind == "rename" else put.values)


def _last_words(values: list[Value]) -> Iterator[Hashable]:
    """The last components of paths, and what they are put together from besides constant texts."""
    for one in (one for value in values for one in alternatives(value)):
        if is_const(one) and not isinstance(one.data[0], str):
            continue
        for word in components(one)[-1:]:
            yield word
            if isinstance(word, tuple) and word[:1] == ("joined",):
                yield from (piece for piece in word[1:] if not isinstance(piece, str))


def _goes_on_to(step: Access, put: Access) -> bool:
    """Whether a rank that has moved the pointer comes to the other step next, in the block or in one around it."""
    inside = {(w.node, w.part) for w in chain(step.where)}
    around = {(w.node, w.part) for w in chain(put.where) if not isinstance(w.node, Call)}
    return around <= inside and bool(step.ranks & put.ranks)
