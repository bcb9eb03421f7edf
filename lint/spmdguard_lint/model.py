"""What the linter reports: locations, trails, findings and rule descriptions.

Terminology: a *location* is 1-based (row and column, as ruff prints them). A *trail* is the chain of
reasons from the rank source to the condition to the place where ranks part. *Traces* are the two
columns of the counter-example: what the diverging rank does, what the others do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

Severity = Literal["error", "warning", "info"]
Certainty = Literal["definite", "likely", "possible"]
Status = Literal["stable", "preview"]
Applicability = Literal["safe", "unsafe"]

SEVERITY_ORDER: dict[str, int] = {"error": 0, "warning": 1, "info": 2}
CERTAINTY_ORDER: dict[str, int] = {"definite": 0, "likely": 1, "possible": 2}


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file; ``row`` and ``column`` count from 1."""

    row: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A span of source text: file (as given on the command line, relative when possible), start and end."""

    filename: str
    start: Location
    end: Location


@dataclass(frozen=True, slots=True)
class TrailStep:
    """One reason in the chain from rank source to condition."""

    site: Site
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text between ``site.start`` and ``site.end`` by ``content``."""

    content: str
    site: Site


@dataclass(frozen=True, slots=True)
class Fix:
    """A set of edits that removes the finding."""

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One report. ``message`` states a fact with the user's names; ``help`` says what to do.

    ``marks`` are the places, by name, that the rule's fix needs to know; ``fix`` is made from them.
    """

    code: str
    name: str
    severity: Severity
    certainty: Certainty
    message: str
    help: str
    site: Site
    trail: tuple[TrailStep, ...] = ()
    diverging: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    fix: Fix | None = None
    marks: tuple[tuple[str, Site], ...] = ()


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A rule's description; ``page`` is the Markdown text shown by ``spmdguard rule CODE``.

    ``fix`` says whether findings may have a fix, and what the best of them is.
    """

    code: str
    name: str
    summary: str
    severity: Severity
    status: Status
    page: str = field(repr=False)
    fix: Applicability | None = None


class Progress(Protocol):
    """Told how a lint run gets on; ``phase`` starts a count of ``total`` items, ``advance`` counts them."""

    def phase(self, label: str, total: int) -> None: ...

    def advance(self, count: int = 1) -> None: ...
