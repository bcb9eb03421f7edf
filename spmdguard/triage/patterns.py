"""What messages mean: the patterns of ``patterns.toml`` and of the user, checked when they are read."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from spmdguard.triage.literals import any_of, need_of

ROLES = ("cause", "suspect", "parted", "victim", "note")
PLACES = ("exception", "line", "both")
_FIELDS = {"name": str, "match": str, "role": str, "means": str, "in": str, "checks": list, "keep": list}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of message: how to know it, what it is to the failure, what to look at."""

    name: str
    match: re.Pattern[str]
    role: str
    means: str
    place: str = "both"
    checks: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


class _Sieve(NamedTuple):
    """The patterns for one place with the words they need, those that need none, and a search for any word."""

    all: list[tuple[Pattern, tuple[str, ...]]]
    free: list[tuple[Pattern, tuple[str, ...]]]
    words: re.Pattern[str]


@dataclass(frozen=True)
class Patterns:
    """The patterns in the order in which they are tried, and the texts of the checks."""

    patterns: tuple[Pattern, ...]
    checks: Mapping[str, str] = field(default_factory=dict)

    def find(self, text: str, place: str) -> tuple[Pattern, re.Match[str]] | None:
        """The first pattern that fits ``text``; ``place`` is ``"exception"`` or ``"line"``."""
        folded = text.casefold()
        sieve = self._sieves[place]
        for pattern, need in sieve.all if sieve.words.search(folded) else sieve.free:
            for word in need:
                if word in folded:
                    break
            else:
                if need:
                    continue
            if found := pattern.match.search(text):
                return pattern, found
        return None

    @cached_property
    def _sieves(self) -> dict[str, _Sieve]:
        needs = [(pattern, need_of(pattern.match)) for pattern in self.patterns]
        sieves = {}
        for place in ("exception", "line"):
            found = [each for each in needs if each[0].place in (place, "both")]
            words = any_of(word for _, need in found for word in need)
            sieves[place] = _Sieve(found, [each for each in found if not each[1]], words)
        return sieves


class PatternError(ValueError):
    """A file of patterns that cannot be used; the text says where and what to do."""


@cache
def own_patterns() -> Patterns:
    """The patterns that come with this package."""
    path = Path(__file__).with_name("patterns.toml")
    return parse(path.read_text(encoding="utf-8"), path.name)


def load(files: Sequence[Path]) -> Patterns:
    """The user's patterns, tried first, then our own.

    Raises:
        PatternError: a file cannot be read, is no TOML, or has an entry that cannot be right.
    """
    patterns: list[Pattern] = []
    checks: dict[str, str] = dict(own_patterns().checks)
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PatternError(f"{path}: {error}") from error
        more = parse(text, str(path), checks)
        patterns.extend(more.patterns)
        checks.update(more.checks)
    return Patterns((*patterns, *own_patterns().patterns), checks)


def parse(text: str, name: str, known_checks: Mapping[str, str] | None = None) -> Patterns:
    """Read one file of patterns."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        data = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise PatternError(f"{name}: not valid TOML: {error}") from error
    checks = data.get("checks", {})
    if not isinstance(checks, dict) or not all(isinstance(text, str) for text in checks.values()):
        raise PatternError(f"{name}: [checks] must hold strings")
    entries = data.get("pattern", [])
    if not isinstance(entries, list):
        raise PatternError(f"{name}: write each pattern as [[pattern]]")
    every_check = {*checks, *(known_checks or {})}
    return Patterns(tuple(_pattern(entry, name, every_check) for entry in entries), checks)


def _pattern(entry: Any, name: str, checks: set[str]) -> Pattern:
    where = f"{name}: [[pattern]] {entry.get('name', '') if isinstance(entry, dict) else ''!r}"
    if not isinstance(entry, dict):
        raise PatternError(f"{where}: must be a table")
    for key, value in entry.items():
        if key not in _FIELDS:
            raise PatternError(f"{where}: unknown key {key!r}; expected one of {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[key]):
            raise PatternError(f"{where}: {key} must be a {_FIELDS[key].__name__}, got {value!r}")
    for key in ("name", "match", "role", "means"):
        if key not in entry:
            raise PatternError(f"{where}: {key} is missing")
    if entry["role"] not in ROLES:
        raise PatternError(f"{where}: role must be one of {', '.join(ROLES)}, got {entry['role']!r}")
    place = entry.get("in", "both")
    if place not in PLACES:
        raise PatternError(f"{where}: in must be one of {', '.join(PLACES)}, got {place!r}")
    unknown = [check for check in entry.get("checks", ()) if check not in checks]
    if unknown:
        raise PatternError(f"{where}: no [checks] entry named {unknown[0]!r}")
    try:
        match = re.compile(entry["match"])
    except re.error as error:
        raise PatternError(f"{where}: match is no regular expression: {error}") from error
    keep = tuple(entry.get("keep", ()))
    missing = [group for group in keep if group not in match.groupindex]
    if missing:
        raise PatternError(f"{where}: keep names the group {missing[0]!r}, which match does not have")
    return Pattern(
        entry["name"], match, entry["role"], entry["means"], place, tuple(entry.get("checks", ())), keep
    )
