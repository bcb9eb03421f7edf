"""Answers to "is it there?" that come before another rank has made it, and that a rank keeps.

Terminology: an answer is *kept* where the test of it assigns an attribute, and it *parts* the ranks where a branch with
collectives asks for that attribute. The ranks that look first keep another value than those that look last.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..source.walking import walk
from ..traces.files import ASKED, KINDS, RANKS, WRITES, Access, Components, accesses, polls
from ..traces.nodes import Branch, Op, every_node
from ..values.value import is_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis import Analysis, Root


class Noticed(NamedTuple):
    """The rank that makes something, the look of all ranks, what keeps the answer, and the branch that it decides."""

    maker: Access
    look: Access
    attribute: str
    branch: Branch


def noticed_by_some(
    analysis: Analysis, root: Root, made: Callable[[Access], list[Components]]
) -> Iterator[Noticed]:
    """The looks for what one rank makes with no collective in between, whose answers decide about collectives."""
    if "seen" not in root.contents.events:
        return
    found = accesses(root.tree, KINDS | ASKED)
    makers = [access for access in found if access.kind in WRITES and 0 < len(access.ranks) < len(RANKS)]
    for look in found if makers else ():
        if look.kind not in ASKED or polls(look.where):
            continue
        for maker in makers:
            racing = maker.index < look.index and look.races(maker)
            if not racing or set(made(maker)).isdisjoint(look.paths):
                continue
            for attribute in _kept(analysis, look):
                branch = _parted(analysis, attribute)
                if branch is not None:
                    yield Noticed(maker, look, attribute, branch)
                    break
            break


def _kept(analysis: Analysis, look: Access) -> list[str]:
    """The attributes that the statement which tests an answer assigns."""
    module = analysis.project.by_filename.get(look.node.place.filename)
    for test in walk(module.tree) if module is not None else ():
        if isinstance(test, ast.If) and any(is_at(part, look.node.place) for part in walk(test.test)):
            stored = (part for step in (*test.body, *test.orelse) for part in walk(step))
            return [
                part.attr
                for part in stored
                if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
            ]
    return []


def _parted(analysis: Analysis, attribute: str) -> Branch | None:
    """A branch that asks for an attribute, and leads to collectives in one of its arms only."""
    asked = re.compile(rf"\.{attribute}\b")
    for root in analysis.roots:
        for node in every_node(root.tree) if root.contents.ops else ():
            if isinstance(node, Branch) and asked.search(node.text):
                operates = [
                    any(isinstance(inner, Op) for inner in every_node(arm)) for arm in node.subtrees()
                ]
                if operates[0] is not operates[1]:
                    return node
    return None
