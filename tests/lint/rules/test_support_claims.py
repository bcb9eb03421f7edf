"""Every divergence has exactly one owner, and that rule reports it at one place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from spmdguard_lint.facts.fact import VARYING_KINDS
from spmdguard_lint.rules import registry
from spmdguard_lint.rules.support_claims import claimed, owner
from spmdguard_lint.traces.divergence import Divergence
from spmdguard_lint.traces.nodes import Branch, Handler, Jump, Op, Try
from spmdguard_lint.values.value import TRUE, Place, Taint

PLACE = Place("x.py", 1, 0, 1, 5)
SHAPES = ("arm", "order", "exit", "trip", "swallow", "handler")
FORMS = ("if", "ternary", "short-circuit", "for", "while", "match", "decorator", "with", "assert")
JUMPS = (None, "return", "break", "continue", "raise", "exit")


def divergence(
    shape: str, kind: str, form: str = "if", jump: str | None = None, call: str = ""
) -> Divergence:
    """A divergence with these properties and nothing else."""
    operation = Op(PLACE, "barrier", "collective", None, "dist.barrier()")
    node = Branch(PLACE, TRUE, [operation], [], form, "rank == 0")
    return Divergence(
        shape,
        node,
        PLACE,
        "dist.barrier()",
        TRUE,
        PLACE,
        "rank == 0",
        form,
        (Taint(kind, PLACE, "get_rank()"),),
        (),
        (),
        (),
        through_call=call,
        jump=Jump(PLACE, jump, jump) if jump else None,
        operation=operation,
    )


def every() -> Iterator[Divergence]:
    for shape, kind, form, jump, call in product(SHAPES, VARYING_KINDS, FORMS, JUMPS, ("", "save")):
        yield divergence(shape, kind, form, jump, call)


def test_each_divergence_is_claimed_once() -> None:
    """Whatever shape, kind, form and jump come together, one known rule owns the divergence."""
    divergences = list(every())
    codes = {owner(d) for d in divergences}
    assert codes <= set(registry.codes())
    claims = [d for code in registry.codes() for d in claimed(divergences, code)]
    assert len(claims) == len(divergences)
    assert {id(d) for d in claims} == {id(d) for d in divergences}


def test_owners_report_what_they_claim() -> None:
    """A rule that owns divergences has a check; none is claimed by a rule that reports nothing."""
    checking = {info.code for info, _ in registry.checks()}
    assert {owner(d) for d in every()} <= checking


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("SPG101", divergence("arm", "rank")),
        ("SPG104", divergence("arm", "rank", call="save")),
        ("SPG105", divergence("arm", "rank", "short-circuit")),
        ("SPG103", divergence("order", "rank")),
        ("SPG102", divergence("exit", "data", jump="break")),
        ("SPG205", divergence("exit", "rank", jump="raise")),
        ("SPG302", divergence("exit", "time", jump="break")),
        ("SPG302", divergence("trip", "time", "while")),
        ("SPG401", divergence("trip", "rank", "for")),
        ("SPG402", divergence("trip", "data", "while")),
        ("SPG206", divergence("handler", "exception")),
        ("SPG202", divergence("swallow", "exception")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_owner(code: str, given: Divergence) -> None:
    """The table, row by row."""
    assert code == owner(given)


def test_handlers_about_memory_have_their_own_rule() -> None:
    """A swallowing handler belongs to SPG203 where it names the error, or asks the message for it."""

    def swallow(handler: Handler) -> str:
        given = divergence("swallow", "exception")
        given.node = Try(PLACE, [], [handler], [], [])
        return owner(given)

    asked = Branch(PLACE, TRUE, [], [], "if", "'out of memory' in str(error)")
    assert swallow(Handler(PLACE, ("OutOfMemoryError",), [], "except OutOfMemoryError")) == "SPG203"
    assert swallow(Handler(PLACE, ("RuntimeError",), [asked], "except RuntimeError")) == "SPG203"
    assert swallow(Handler(PLACE, ("RuntimeError",), [], "except RuntimeError")) == "SPG202"
