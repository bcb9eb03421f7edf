"""Where a program has some ranks do something alone: the branches that the rank decides, as the analysis sees them."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis import read_project
from ..config import Config
from ..deep_stack import with_deep_stack
from ..model import Location, Site
from ..names.project import Project
from ..source.reading import SourceFile
from ..traces.nodes import Branch, Tree
from ..traces.terms import subtrees
from ..values.evaluate import rank_dependent


def rank_branches(sources: Mapping[str, SourceFile], config: Config) -> list[Site]:
    """The places of the branches whose condition the rank decides."""
    return with_deep_stack(lambda: _branches(sources, config))


def _branches(sources: Mapping[str, SourceFile], config: Config) -> list[Site]:
    found: set[Site] = set()
    for root in read_project(Project.load(list(sources.values())), config).roots:
        stack: list[Tree] = [root.tree]
        while stack:
            for node in stack.pop():
                if isinstance(node, Branch) and node.form == "if" and rank_dependent(node.condition):
                    place = node.place
                    start = Location(place.row, place.column + 1)
                    found.add(Site(place.filename, start, start))
                stack.extend(subtrees(node))
    return sorted(found)
