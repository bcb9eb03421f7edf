"""What the analysis says of a program: branches that the rank decides, functions that come to a collective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..analysis import read_project
from ..config import Config
from ..deep_stack import with_deep_stack
from ..model import Location, Site
from ..names.project import Project
from ..source.reading import SourceFile
from ..traces.contents import contents_of
from ..traces.nodes import Branch, Call, Tree
from ..values.evaluate import rank_dependent


@dataclass(frozen=True)
class Seen:
    """The places of the branches whose condition the rank decides; functions in which other ranks are met, by name."""

    branches: list[Site]
    meeting: frozenset[str]


def read_ranks(sources: Mapping[str, SourceFile], config: Config) -> Seen:
    """Read a program's trace trees."""
    return with_deep_stack(lambda: _read(sources, config))


def _read(sources: Mapping[str, SourceFile], config: Config) -> Seen:
    branches: set[Site] = set()
    meeting: set[str] = set()
    for root in read_project(Project.load(list(sources.values())), config).roots:
        stack: list[Tree] = [root.tree]
        while stack:
            for node in stack.pop():
                if isinstance(node, Branch) and node.form == "if" and rank_dependent(node.condition):
                    place = node.place
                    start = Location(place.row, place.column + 1)
                    branches.add(Site(place.filename, start, start))
                elif isinstance(node, Call) and contents_of(node.body).ops:
                    meeting.add(node.name.rpartition(".")[2])
                stack.extend(node.subtrees())
    return Seen(sorted(branches), frozenset(meeting))
