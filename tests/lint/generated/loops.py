"""Loops with uniform and rank-varying trip counts, and the jumps out of them."""

from __future__ import annotations

import re

from tests.lint.generated.collectives import bare, flag
from tests.lint.generated.scope import Lines, Scope, Var, indent
from tests.lint.generated.values import condition, number, rank_condition, uniform_condition, world_text

LOOP_JUMPS = frozenset({"break", "continue"})


def jump(scope: Scope) -> Lines:
    """Leave under a condition: one all ranks agree on, or one that holds on some ranks."""
    varies = bool(scope.loose) or scope.defect()
    if varies and (scope.loose or scope.jumps) and scope.draw.chance(70):
        allowed = sorted(scope.loose or scope.jumps)
        test = rank_condition(scope)
    elif scope.jumps:
        allowed, test = sorted(scope.jumps), condition(scope, scope.varying and scope.draw.chance(50))
    else:
        return []
    kind = scope.draw.pick(allowed)
    before = scope.inner(jumps=frozenset(), loose=frozenset()).block(1) if scope.draw.chance(25) else []
    return [f"if {test}:", *indent([*before, leave(scope, kind)])]


def leave(scope: Scope, kind: str) -> str:
    """The jump itself."""
    if kind == "return":
        return returning(scope)
    if kind == "raise":
        return f'raise {scope.draw.pick(scope.caught or ("RuntimeError", "StepError"))}("no way on")'
    return kind


def returning(scope: Scope, varies: bool | None = None) -> str:
    """A return statement that fits the function."""
    if not scope.returns:
        return "return"
    differs = scope.draw.chance(30) if varies is None else varies
    return f"return {condition(scope, differs) if scope.returns == 'flag' else number(scope, differs)}"


def _body(scope: Scope, add: tuple[Var, ...], varying: bool) -> Scope:
    if varying:
        inside = scope.arm()
        inside.names += add
        inside.jumps = inside.jumps | LOOP_JUMPS
        inside.loose = inside.loose | LOOP_JUMPS if not inside.collectives else inside.loose
        return inside
    return scope.inner(add=add, jumps=scope.jumps | LOOP_JUMPS, loose=scope.loose - LOOP_JUMPS)


def _local_body(scope: Scope, add: tuple[Var, ...]) -> Scope:
    """A loop without collectives: ranks may leave it as they like."""
    return scope.inner(
        add=add, collectives=False, jumps=scope.loose | LOOP_JUMPS, loose=scope.loose | LOOP_JUMPS
    )


def _with_else(scope: Scope, lines: Lines, local: bool) -> Lines:
    if scope.draw.chance(20):
        return [*lines, "else:", *indent((scope.local() if local else scope.inner()).block(1))]
    return lines


def for_loop(scope: Scope) -> Lines:
    """A counted loop; now and then its count differs between ranks."""
    draw = scope.draw
    name = scope.program.fresh(draw.pick(("step", "i", "epoch")))
    kind = draw.weighted(((6, "uniform"), (2, "local"), (2, "varying")))
    if kind == "uniform":
        count = draw.pick(
            (f"range({number(scope, False)})", "range(2)", '["a", "b"]', f"range({world_text(scope)})")
        )
        add = () if count.startswith("[") else (Var(name, "place", False),)
        inside = _body(scope, add, False)
    else:
        count = f"range({number(scope, draw.chance(60))})"
        add = (Var(name, "place", True),)
        inside = _local_body(scope, add) if kind == "local" else _body(scope, add, True)
    lines = [f"for {name} in {count}:", *indent(inside.block(3))]
    return _with_else(scope, lines, kind != "uniform")


def while_loop(scope: Scope) -> Lines:
    """A loop with a counter of its own; now and then its limit differs between ranks."""
    name = scope.program.fresh("turn")
    varying = scope.draw.chance(30)
    inside = _body(scope, (Var(name, "place", varying),), varying)
    limit = number(scope, varying)
    inside.limits = inside.limits | _words(limit)
    lines = [f"{name} = 0", f"while {name} < {limit}:", *indent([f"{name} += 1", *inside.block(2)])]
    return _with_else(scope, lines, varying)


def voted_loop(scope: Scope) -> Lines:
    """A training loop whose end all ranks vote on; with a defect, each decides for itself."""
    name = scope.program.fresh("step")
    inside = _body(scope, (Var(name, "place", False),), False)
    if scope.defect():
        return [
            f"for {name} in range(3):",
            *indent([bare(scope), f"if {rank_condition(scope)}:", "    break"]),
        ]
    body = [*inside.block(1), *flag(inside)]
    return [f"for {name} in range(3):", *indent([*body, f"if {inside.names[-1].text} > 0:", "    break"])]


def until_loop(scope: Scope) -> Lines:
    """``while True`` with a common count to end it."""
    name = scope.program.fresh("round")
    limit = number(scope, False)
    inside = scope.inner(jumps=frozenset(), add=(Var(name, "place", False),))
    inside.limits = inside.limits | _words(limit)
    body = [f"{name} += 1", *inside.block(1), f"if {name} >= {limit}:", "    break"]
    return [f"{name} = 0", "while True:", *indent(body)]


def _words(text: str) -> frozenset[str]:
    """The names and fields in an expression."""
    return frozenset(re.findall(r"[a-z_][\w.]*", text))


def comprehension(scope: Scope) -> Lines:
    """Local numbers from a comprehension; the sum is kept."""
    varies = scope.draw.chance(50)
    name = scope.program.fresh("counts")
    line = f"{name} = [k * 2 for k in range({number(scope, varies)}) if {_plain_filter(scope)}]"
    scope.names.append(Var(f"len({name})", "place", varies))
    return [line]


def _plain_filter(scope: Scope) -> str:
    return scope.draw.pick(("k >= 0", "k % 2 == 0", uniform_condition(scope)))
