"""Branches: uniform, always true, and rank-varying ones, in forms that keep ranks together or part them."""

from __future__ import annotations

from tests.lint.generated.collectives import bare, trace
from tests.lint.generated.scope import NONE, Lines, Scope, indent
from tests.lint.generated.values import (
    BRANCH_TESTS,
    always_condition,
    condition,
    local_statement,
    number,
    rank_condition,
    rank_text,
    uniform_condition,
)


def uniform_if(scope: Scope) -> Lines:
    """All ranks take the same arm."""
    test = always_condition(scope) if scope.draw.chance(25) else uniform_condition(scope)
    lines = [f"if {test}:", *indent(scope.inner().block(2))]
    if scope.draw.chance(40):
        lines += ["else:", *indent(scope.inner().block(2))]
    return lines


def rank_if(scope: Scope) -> Lines:
    """Some ranks take another arm than others."""
    test, lines = rank_condition(scope), indent(scope.arm().block(2))
    if scope.draw.chance(20):
        lines += [f"elif {condition(scope, scope.draw.chance(60))}:", *indent(scope.arm().block(1))]
    if scope.draw.chance(40):
        lines += ["else:", *indent(scope.arm().block(2))]
    if scope.draw.chance(6) and not any("raise" in line for line in lines):
        test = scope.draw.pick(BRANCH_TESTS)
    return [f"if {test}:", *lines]


def _dressed(scope: Scope, calls: Lines) -> Lines:
    """The calls with local statements around them."""
    before = local_statement(scope.local()) if scope.draw.chance(40) else []
    return [*before, *calls]


def both_arms(scope: Scope) -> Lines:
    """The same collectives on both arms; with a defect, one arm lacks the last."""
    calls = trace(scope)
    other = calls[:-1] if scope.defect() else calls
    return [
        f"if {rank_condition(scope)}:",
        *indent(_dressed(scope, calls)),
        "else:",
        *indent(_dressed(scope, other)),
    ]


def complementary(scope: Scope) -> Lines:
    """A split over two statements whose tests exclude one another (rank-zero-first)."""
    rank, call = rank_text(scope), bare(scope)
    first, second = scope.draw.pick((("> 0", "== 0"), ("== 0", "!= 0"), ("% 2 == 0", "% 2 == 1")))
    other = bare(scope) if scope.defect() else call
    return [
        f"if {rank} {first}:",
        *indent([call]),
        *local_statement(scope),
        f"if {rank} {second}:",
        *indent([other]),
    ]


def short_circuit(scope: Scope) -> Lines:
    """A collective inside an expression."""
    draw = scope.draw
    call = bare(scope)
    if scope.defect():
        test = rank_condition(scope)
        return [
            draw.pick(
                (f"{test} and {call}", f"{call} if {test} else None", f"_ = [{call}] if {test} else []")
            )
        ]
    test = uniform_condition(scope)
    return [
        draw.pick((f"({test}) and {call}", f"{call} if {test} else {call}", f"[{call} for _ in range(2)]"))
    ]


def match_rank(scope: Scope) -> Lines:
    """A match statement on the rank, or on a common number."""
    if scope.draw.chance(50):
        subject, arms = number(scope, False), [scope.inner(), scope.inner()]
    else:
        subject, arms = rank_text(scope), [scope.arm(), scope.arm()]
    head = scope.draw.pick(("case 0:", "case 0 | 2:", "case 1:", "case other if other > 1:"))
    return [
        f"match {subject}:",
        *indent([head, *indent(arms[0].block(1)), "case _:", *indent(arms[1].block(1))]),
    ]


def walrus(scope: Scope) -> Lines:
    """A test that also names its value."""
    name = scope.program.fresh("mine")
    return [
        f"if ({name} := {number(scope, True)}) > 0:",
        *indent(scope.arm().block(1)),
    ]


def nested_function(scope: Scope) -> Lines:
    """A function of its own inside the block, called or handed over to be called."""
    name = scope.program.fresh("action")
    inside = scope.inner(collectives=False, jumps=NONE, loose=NONE)
    inside.settled = True
    body = indent(inside.block(1) if scope.varying or not scope.collectives else trace(scope))
    lines = [f"def {name}():", *body]
    if scope.draw.chance(50):
        lines = [f"{name} = lambda: {bare(scope)}"] if scope.collectives else lines
    call = f"{name}()"
    if scope.collectives and scope.defect():
        return [*lines, f"if {rank_condition(scope)}:", *indent([call])]
    if scope.draw.chance(30):
        return [*lines, f"for each in [{name}, {name}]:", "    each()"]
    return [*lines, call]
