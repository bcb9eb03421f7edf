"""Statements that involve the other ranks: collectives, and what they make of local values."""

from __future__ import annotations

from collections.abc import Callable

from tests.lint.generated.scope import Lines, Scope, Var, indent
from tests.lint.generated.values import number, rank_condition, rank_text, uniform_condition, world_text


def bare(scope: Scope) -> str:
    """One collective whose result nobody looks at."""
    draw = scope.draw
    tensors = scope.of("tensor")
    value = draw.pick(tensors).text if tensors and draw.chance(50) else "torch.zeros(1)"
    return draw.weighted(
        (
            (5, f"{scope.name('barrier')}()"),
            (3, f"{scope.name('all_reduce')}({value})"),
            (2, f"{scope.name('broadcast')}({value}, src=0)"),
            (1, f"{scope.name('reduce')}({value}, dst=0)"),
        )
    )


def trace(scope: Scope) -> Lines:
    """One or two bare collectives."""
    return [bare(scope) for _ in range(scope.draw.integer(1, 2))]


def plain(scope: Scope) -> Lines:
    return [bare(scope)]


def reduced(scope: Scope) -> Lines:
    """Each rank's number goes in, the same number comes out on every rank."""
    draw = scope.draw
    name = scope.program.fresh(draw.pick(("total", "votes", "limit")))
    op = draw.pick(("", "", ", op={d}.ReduceOp.MAX", ", op={d}.ReduceOp.MIN")).format(d=scope.program.dist)
    start = f"{name} = torch.tensor([{number(scope, draw.chance(60))}])"
    before, after = _afterwards(scope, f"{scope.name('all_reduce')}({name}{op}", scope.program.full)
    scope.names.append(Var(f"{name}.item()", "place", False))
    return [start, *before, *after]


def _afterwards(scope: Scope, opened: str, may_wait: bool) -> tuple[Lines, Lines]:
    """The call at once, or with a handle that is waited for."""
    if may_wait and scope.draw.chance(30):
        work = scope.program.fresh("work")
        return [f"{work} = {opened}, async_op=True)"], [f"{work}.wait()"]
    return [f"{opened})"], []


def flag(scope: Scope) -> Lines:
    """A local condition becomes a common one: the usual vote."""
    draw = scope.draw
    name = scope.program.fresh(draw.pick(("stop", "failed", "found")))
    test = rank_condition(scope)
    if draw.chance(60):
        test = f"({test}) and {uniform_condition(scope)}"
    lines = [
        f"{name} = torch.tensor([1 if {test} else 0])",
        f"{scope.name('all_reduce')}({name}, op={scope.program.dist}.ReduceOp.MAX)",
    ]
    scope.names.append(Var(f"{name}.item()", "place", False))
    return lines


def told(scope: Scope) -> Lines:
    """Rank 0 decides and tells the others."""
    name = scope.program.fresh("box")
    what = number(scope, scope.draw.chance(50))
    if scope.draw.chance(50):
        lines = [f"{name} = [{what} if {rank_text(scope)} == 0 else None]"]
    else:
        lines = [f"{name} = [None]", f"if {rank_text(scope)} == 0:", f"    {name}[0] = {what}"]
    lines.append(f"{scope.name('broadcast_object_list')}({name}, src=0)")
    scope.names.append(Var(f"{name}[0]", "place", False))
    return lines


def gathered(scope: Scope) -> Lines:
    """Every rank learns what every rank has."""
    name = scope.program.fresh("seen")
    lines = [
        f"{name} = [None] * {world_text(scope)}",
        f"{scope.name('all_gather_object')}({name}, {number(scope, True)})",
    ]
    scope.names.append(
        Var(scope.draw.pick(("max({})", "sum({})", "min({})", "{}[0]")).format(name), "place", False)
    )
    return lines


def gathered_tensors(scope: Scope) -> Lines:
    name = scope.program.fresh("parts")
    lines = [
        f"{name} = [torch.zeros(1) for _ in range({world_text(scope)})]",
        f"{scope.name('all_gather')}({name}, torch.tensor([{number(scope, True)}]))",
    ]
    scope.names.append(Var(f"{name}[0].item()", "place", False))
    return lines


def collected(scope: Scope) -> Lines:
    """Rank 0 alone learns what every rank has."""
    name = scope.program.fresh("rows")
    lines = [
        f"{name} = [None] * {world_text(scope)} if {rank_text(scope)} == 0 else None",
        f"{scope.name('gather_object')}({number(scope, True)}, {name}, dst=0)",
    ]
    scope.names.append(Var(name, "rows", True))
    return lines


def scattered(scope: Scope) -> Lines:
    """Rank 0 gives every rank its own value."""
    name = scope.program.fresh("own")
    parts = f"list(range({world_text(scope)}))"
    lines = [
        f"{name} = [None]",
        f"{scope.name('scatter_object_list')}({name}, {parts} if {rank_text(scope)} == 0 else None, src=0)",
    ]
    scope.names.append(Var(f"{name}[0]", "place", True))
    return lines


def tensor(scope: Scope) -> Lines:
    """A tensor that later collectives may use."""
    name = scope.program.fresh("grad")
    line = f"{name} = torch.tensor([{number(scope, scope.draw.chance(50))}])"
    scope.names.append(Var(name, "tensor"))
    return [line]


GROUPS = (
    ("evens", "[r for r in range({w}) if r % 2 == 0]", "{r} % 2 == 0"),
    ("pair", "[0, 1]", "{r} < 2"),
    ("rest", "list(range(1, {w}))", "{r} > 0"),
    ("everyone", "list(range({w}))", "{r} >= 0"),
)


def new_group(scope: Scope) -> Lines:
    """All ranks make a group of some."""
    stem, members, member = scope.draw.pick(GROUPS)
    name = scope.program.fresh(stem)
    rank, world = rank_text(scope), world_text(scope)
    test = scope.draw.pick(
        (
            member.format(r=rank),
            member.format(r=rank),
            f"{scope.program.dist}.get_rank({name}) >= 0",
            f"{name} != {scope.program.dist}.GroupMember.NON_GROUP_MEMBER",
        )
    )
    scope.names.append(Var(name, "group", True, test))
    return [f"{name} = {scope.name('new_group')}({members.format(w=world)})"]


def in_group(scope: Scope) -> Lines:
    """A collective of a group, by its members, or by all (others are ignored)."""
    groups = scope.of("group")
    if not groups:
        return new_group(scope)
    group = scope.draw.pick(groups)
    op = scope.draw.pick(("barrier(group={g})", "all_reduce(torch.zeros(1), group={g})"))
    line = f"{scope.program.dist}.{op.format(g=group.text)}"
    if scope.defect():
        return [f"if {rank_condition(scope)}:", *indent([line])]
    return [f"if {group.member}:", *indent([line])] if scope.draw.chance(60) else [line]


BASIC: tuple[tuple[int, Callable[[Scope], Lines]], ...] = (
    (8, plain),
    (3, reduced),
    (3, flag),
    (2, told),
    (1, tensor),
)
FULL: tuple[tuple[int, Callable[[Scope], Lines]], ...] = (
    *BASIC,
    (2, gathered),
    (1, gathered_tensors),
    (1, collected),
    (1, scattered),
    (2, in_group),
)


def collective(scope: Scope) -> Lines:
    return scope.draw.weighted(FULL if scope.program.full else BASIC)(scope)
