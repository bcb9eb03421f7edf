"""Every fact of every table, with the name under which it stands."""

from __future__ import annotations

from collections.abc import Iterator

from spmdguard_lint.facts import conventions
from spmdguard_lint.facts.fact import Arg, Fact, TypeFacts
from spmdguard_lint.facts.tables import TABLES, Tables


def tables() -> Tables:
    """All families, read."""
    TABLES.need_all()
    return TABLES


def type_members(facts: TypeFacts) -> Iterator[tuple[str, Fact]]:
    """The facts of a type by member name."""
    yield from facts.methods.items()
    yield from facts.attributes.items()
    for name, fact in (("()", facts.call), ("iter", facts.iterate), ("*", facts.other)):
        if fact is not None:
            yield name, fact


def every_fact() -> Iterator[tuple[str, Fact]]:
    """All facts of the tables and of the conventions."""
    known = tables()
    yield from known.functions.items()
    yield from known.constants.items()
    yield from known.prefix_facts
    for type_name, facts in known.types.items():
        for member, fact in type_members(facts):
            yield f"{type_name}.{member}", fact
    yield from conventions.ENVIRONMENT.items()
    yield from conventions.NAMES.items()
    yield from conventions.UNKNOWN_ATTRIBUTES.items()
    for name, entry in conventions.UNKNOWN_METHODS.items():
        yield name, entry[2]


def places(fact: Fact) -> list[Arg]:
    """Every argument position that a fact states."""
    single = [fact.group, fact.root, fact.when, fact.unless, fact.retypes, fact.callee]
    return [*(arg for arg in single if arg is not None), *fact.invariant, *fact.buffers, *fact.outputs]
