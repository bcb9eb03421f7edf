"""Conditions, values and statements that involve no other rank."""

from __future__ import annotations

from tests.lint.generated.scope import Helper, Lines, Scope, Var, indent

RANK_TESTS = (
    "{r} == 0",
    "{r} != 0",
    "{r} > 0",
    "{r} % 2 == 0",
    "not {r}",
    "{r} % 2",
    "{r} == {w} - 1",
    "{r} < {w} - 1",
    "{r} != {w} - 1",
    "{r} >= 1",
    "{r} + 1 == {w}",
    "{r} in (0, 2)",
    "0 < {r}",
    "{r} <= 0",
    "{r} == 1",
    "{r} // 2 == 1",
)
HIGH_RANK_TESTS = ("{r} == 5", "{r} < 8", "{r} > 6", "{r} // 8 == 0")  # told apart by nine ranks only
ALWAYS_TESTS = ("{r} < {w}", "0 <= {r} < {w}", "{r} >= 0", "{r} != {w}", "{w} > 1", "{w} >= 2")
# A raise under a missing file or a random number is taken for a fatal precondition of all ranks: branches only.
BRANCH_TESTS = ('os.path.exists("ready.txt")', "torch.rand(1).item() < 0.5")
OUTSIDE_RANK_TESTS = (
    'os.environ["RANK"] == "0"',
    'int(os.environ["RANK"]) == 0',
    'os.getenv("RANK") != "0"',
    "time.monotonic() > 100.0",
)
UNIFORM_TESTS = ("{w} > 2", "{w} % 2 == 0", "{w} == 2", "{w} < 4")
INPUT_TESTS = ('os.environ["MODE"] == "fast"', "len(sys.argv) > 1", 'os.environ.get("MODE") != "fast"')


def rank_text(scope: Scope) -> str:
    known = scope.of("rank")
    return scope.draw.pick(known).text if known else f"{scope.program.dist}.get_rank()"


def world_text(scope: Scope) -> str:
    known = scope.of("world")
    return scope.draw.pick(known).text if known else f"{scope.program.dist}.get_world_size()"


def _filled(scope: Scope, template: str) -> str:
    return template.format(r=rank_text(scope), w=world_text(scope))


def _tests_of(var: Var, draw_place: bool) -> list[str]:
    if var.kind == "flag":
        return [var.text, f"not {var.text}"]
    if var.kind == "rows":
        return [f"{var.text} is not None", f"{var.text} is None"]
    if var.kind in ("place", "count"):
        limit = 0 if draw_place else 1
        return [f"{var.text} > {limit}", f"{var.text} == 0", f"{var.text} % 2 == 1", f"{var.text} <= {limit}"]
    return []


def _predicate(scope: Scope, varies: bool) -> str:
    helpers = [h for h in scope.program.helpers if h.local and h.returns == "flag" and h.varies == varies]
    return call(scope, scope.draw.pick(helpers)) if helpers else ""


def rank_condition(scope: Scope) -> str:
    """A condition that holds on some ranks only."""
    draw = scope.draw
    choice = draw.integer(0, 9)
    if choice >= 6:
        tests = [t for var in scope.names if var.varies for t in _tests_of(var, True)]
        if tests:
            return draw.pick(tests)
    if choice == 5 and (text := _predicate(scope, True)):
        return text
    if choice == 4 and draw.chance(40):
        return draw.pick(OUTSIDE_RANK_TESTS)
    if choice == 2 and draw.chance(20):
        return _filled(scope, draw.pick(HIGH_RANK_TESTS))
    if choice == 3 and draw.chance(50):
        joint = draw.pick(("and", "or"))
        return f"{_filled(scope, draw.pick(RANK_TESTS))} {joint} {uniform_condition(scope)}"
    return _filled(scope, draw.pick(RANK_TESTS))


def always_condition(scope: Scope) -> str:
    """A condition that looks like a question and is true on every rank."""
    return _filled(scope, scope.draw.pick(ALWAYS_TESTS))


def uniform_condition(scope: Scope) -> str:
    """A condition on which all ranks agree."""
    draw = scope.draw
    choice = draw.integer(0, 5)
    if choice >= 3:
        tests = [t for var in scope.names if not var.varies for t in _tests_of(var, False)]
        if tests:
            return draw.pick(tests)
    if choice == 2:
        return draw.pick(INPUT_TESTS)
    if choice == 1 and (text := _predicate(scope, False)):
        return text
    return _filled(scope, draw.pick(UNIFORM_TESTS))


def condition(scope: Scope, varies: bool) -> str:
    return rank_condition(scope) if varies else uniform_condition(scope)


def number(scope: Scope, varies: bool) -> str:
    """A whole number, the same on every rank or not."""
    draw = scope.draw
    if varies:
        known = [v.text for v in scope.names if v.varies and v.kind in ("place", "rank")]
        base = draw.pick(known) if known else rank_text(scope)
        return draw.pick(("{}", "{} + 1", "{} % 2", "{} * 2")).format(base)
    known = [v.text for v in scope.names if not v.varies and v.kind in ("place", "count", "world")]
    return draw.pick(known) if known and draw.chance(60) else str(draw.integer(1, 3))


def call(scope: Scope, helper: Helper) -> str:
    """A call with arguments of the expected kind; with a defect, of the other variance."""
    arguments = []
    for param in helper.params:
        varies = param.varies or (not helper.local and scope.defect())
        if param.kind == "rank":
            arguments.append(rank_text(scope))
        elif param.kind == "flag":
            arguments.append(condition(scope, varies))
        else:
            arguments.append(number(scope, varies))
    return f"{helper.name}({', '.join(arguments)})"


def assign(scope: Scope) -> Lines:
    """A new local value."""
    draw = scope.draw
    varies = draw.chance(50)
    if draw.chance(40):
        name = scope.program.fresh(
            draw.pick(("lead", "busy", "ready") if varies else ("fast", "last", "big"))
        )
        line = f"{name} = {condition(scope, varies)}"
        scope.names.append(Var(name, "flag", varies, changes=True))
    else:
        name = scope.program.fresh(
            draw.pick(("share", "offset", "place") if varies else ("steps", "depth", "size"))
        )
        line = f"{name} = {number(scope, varies)}"
        scope.names.append(Var(name, "place" if varies else "count", varies, changes=True))
    return [line]


def update(scope: Scope) -> Lines:
    """Another value for a name that is there already."""
    known = scope.assignable()
    if not known:
        return assign(scope)
    var, varies = scope.draw.pick(known), scope.draw.chance(40)
    if var.kind == "flag":
        form = scope.draw.pick(
            ("{x} = not {x}", "{x} = {x} or {c}", "{x} = {x} and {c}", "{x} = {c}", "{x} = {c}")
        )
    else:
        form = scope.draw.pick(
            ("{x} += 1", "{x} = {x} + {n}", "{x} = {n}", "{x} = {n}", "{x} = max({x}, {n})")
        )
    line = form.format(x=var.text, c=condition(scope, varies), n=number(scope, varies))
    scope.changed(var, varies or (var.varies and form.count("{x}") + form.count("+=") > 1))
    return [line]


def choose(scope: Scope) -> Lines:
    """A value that depends on the way through a branch."""
    varies = scope.draw.chance(50)
    name = scope.program.fresh("level" if varies else "width")
    test = condition(scope, varies)
    if scope.draw.chance(50):
        lines = [f"{name} = 2 if {test} else 0"]
    else:
        lines = [f"{name} = 0", f"if {test}:", f"    {name} = 2"]
    scope.names.append(Var(name, "place", varies, changes=True))
    return lines


def call_local(scope: Scope) -> Lines:
    """Call a helper that involves no other rank, keep its result."""
    helpers = [h for h in scope.program.helpers if h.local and h.form == "call" and h.returns]
    if not helpers:
        return assign(scope)
    helper = scope.draw.pick(helpers)
    name = scope.program.fresh("picked")
    line = f"{name} = {call(scope, helper)}"
    scope.names.append(Var(name, helper.returns, helper.varies))
    return [line]


def note(scope: Scope) -> Lines:
    """A print, sometimes on some ranks only."""
    if scope.draw.chance(50):
        return [f'print("at", {number(scope, scope.draw.chance(50))})']
    return [f"if {rank_condition(scope)}:", *indent(['print("only here")'])]


def local_statement(scope: Scope) -> Lines:
    production = scope.draw.weighted(((3, assign), (2, choose), (2, update), (2, note), (2, call_local)))
    return production(scope)
