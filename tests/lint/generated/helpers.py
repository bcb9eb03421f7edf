"""The definitions of a program: functions, classes with methods, generators, context managers, coroutines."""

from __future__ import annotations

from dataclasses import replace

from tests.lint.generated.collectives import bare, trace
from tests.lint.generated.loops import returning
from tests.lint.generated.scope import Helper, Lines, Program, Scope, Var, indent
from tests.lint.generated.values import rank_condition, uniform_condition

RETURN = frozenset({"return"})


def _params(program: Program) -> tuple[Var, ...]:
    """Parameters: the rank, a flag, a count."""
    draw = program.draw
    chosen = []
    if draw.chance(60):
        chosen.append(Var("rank", "rank", True))
    if draw.chance(40):
        chosen.append(Var("flag", "flag", draw.chance(30)))
    if draw.chance(40):
        chosen.append(Var("count", "place", draw.chance(30)))
    return tuple(chosen)


def _head(name: str, params: tuple[Var, ...]) -> str:
    return f"def {name}({', '.join(param.text for param in params)}):"


def function(program: Program) -> Lines:
    """A function that may perform collectives and may return early."""
    name, params = program.fresh("phase"), _params(program)
    returns = program.draw.pick(("", "", "place", "flag"))
    scope = Scope(program, list(params), jumps=RETURN, returns=returns, depth=1)
    lines = [_head(name, params), *indent(scope.block(3))]
    varies = program.draw.chance(30)
    if returns:
        lines.append(f"    {returning(scope, varies)}")
    program.helpers.append(Helper(name, params, returns, varies))
    return lines


def predicate(program: Program) -> Lines:
    """A small question about the rank, or about the job."""
    varies = program.draw.chance(70)
    name = program.fresh("is_chosen" if varies else "is_wide")
    scope = Scope(program, [], depth=2)
    test = rank_condition(scope) if varies else uniform_condition(scope)
    program.helpers.append(Helper(name, (), "flag", varies, local=True))
    return [f"def {name}():", f"    return {test}"]


def local_function(program: Program) -> Lines:
    """A function without collectives: ranks may go through it as they like."""
    name, params = program.fresh("prepare"), _params(program)
    scope = Scope(
        program, list(params), collectives=False, jumps=RETURN, loose=RETURN, returns="place", depth=1
    )
    lines = [_head(name, params), *indent([*scope.block(2), returning(scope)])]
    program.helpers.append(Helper(name, params, "place", True, local=True))
    return lines


def recursion(program: Program) -> Lines:
    """A function that calls itself a given number of times."""
    name = program.fresh("descend")
    call = bare(Scope(program, []))
    program.helpers.append(Helper(name, (Var("depth", "count", False),)))
    return [
        f"def {name}(depth):",
        "    if depth <= 0:",
        "        return",
        f"    {call}",
        f"    {name}(depth - 1)",
    ]


def generator(program: Program) -> Lines:
    """A generator, with or without collectives between its items."""
    name = program.fresh("batches")
    shared = program.draw.chance(40)
    scope = Scope(program, [Var("count", "place", False)], collectives=shared, depth=2)
    inside = indent([*(trace(scope) if shared else []), "yield item"])
    end = indent([bare(scope)]) if shared and program.draw.chance(40) else []
    program.helpers.append(Helper(name, (Var("count", "count", False),), local=not shared, form="generator"))
    return [f"def {name}(count):", "    for item in range(count):", *indent(inside), *end]


def manager(program: Program) -> Lines:
    """A context manager: a class, or a function with one yield."""
    draw = program.draw
    shared, suppresses = draw.chance(50), draw.chance(35)
    scope = Scope(program, [], depth=2)
    first = [bare(scope)] if shared and draw.chance(50) else []
    last = [bare(scope)] if shared else []
    name = program.fresh("Section" if draw.chance(50) else "section")
    program.helpers.append(Helper(name, (), local=not shared, form="manager", suppresses=suppresses))
    if name.startswith("S"):
        answer = "return kind is not None and issubclass(kind, StepError)" if suppresses else "return False"
        methods = ["def __enter__(self):", *indent([*first, "return self"])]
        methods += ["def __exit__(self, kind, value, trace):", *indent([*last, answer])]
        return [f"class {name}:", *indent(methods)]
    handler = ["except StepError:", "    pass"] if suppresses else []
    body = ["try:", "    yield", *handler, "finally:", *indent(last)]
    return ["@contextlib.contextmanager", f"def {name}():", *indent([*first, *body])]


def coroutine(program: Program) -> Lines:
    """An async function that awaits another."""
    name, inner = program.fresh("exchange"), program.fresh("send")
    lines: Lines = []
    for title, end in ((inner, []), (name, [f"await {inner}(rank)"])):
        scope = Scope(program, [Var("rank", "rank", True)], jumps=RETURN, depth=2)
        lines += [f"async def {title}(rank):", *indent([*scope.block(1), *end])]
    program.helpers.append(Helper(name, (Var("rank", "rank", True),), form="coroutine"))
    return lines


def decorated(program: Program) -> Lines:
    """A decorator that adds a collective after the function it wraps."""
    wrap, name = program.fresh("fenced"), program.fresh("work")
    scope = Scope(program, [Var("rank", "rank", True)], jumps=RETURN, depth=2)
    call = bare(scope)
    inner = [
        "@functools.wraps(fn)",
        "def wrapper(*args):",
        *indent(["result = fn(*args)", call, "return result"]),
    ]
    lines = [f"def {wrap}(fn):", *indent([*inner, "return wrapper"])]
    lines += [f"@{wrap}", f"def {name}(rank):", *indent(scope.block(2))]
    program.helpers.append(Helper(name, (Var("rank", "rank", True),)))
    return lines


def runner_class(program: Program) -> tuple[Lines, tuple[Var, ...]]:
    """A class with fields and methods, and what is visible of its instance ``runner``."""
    draw = program.draw
    fields = [Var("self.rank", "rank", True), Var("self.world", "world"), Var("self.lead", "flag", True)]
    fields += [Var("self.steps", "count"), Var("self.chosen", "flag", True)]
    init = [
        "self.rank = rank",
        "self.world = world",
        "self.lead = rank == 0",
        f"self.steps = {draw.integer(1, 3)}",
    ]
    lines = ["def __init__(self, rank, world):", *indent(init)]
    lines += ["@property", "def chosen(self):", f"    return {rank_condition(Scope(program, fields[:2]))}"]
    for _ in range(draw.integer(1, 2)):
        name, params = program.fresh("run"), tuple(p for p in _params(program) if p.kind != "rank")
        returns = draw.pick(("", "place"))
        scope = Scope(program, [*fields, *params], jumps=RETURN, returns=returns, depth=1)
        body = [*scope.block(2), *([returning(scope, False)] if returns else [])]
        lines += [f"def {name}({', '.join(['self', *(p.text for p in params)])}):", *indent(body)]
        program.helpers.append(Helper(f"self.{name}", params, returns, False, form="own"))
    program.helpers = [
        replace(h, name=h.name.replace("self", "runner"), form="method") if h.form == "own" else h
        for h in program.helpers
    ]
    seen = tuple(Var(v.text.replace("self", "runner"), v.kind, v.varies) for v in fields)
    return ["class Runner:", *indent(lines)], seen


def hierarchy(program: Program) -> tuple[Lines, str, Helper]:
    """Two classes that answer the same call; the script picks one of them."""
    scope = Scope(program, [], depth=2)
    calls, defect = trace(scope), scope.defect()
    lines = ["class Loud:", *indent(["def finish(self):", *indent(calls)])]
    lines += ["class Quiet(Loud):", *indent(["def finish(self):", "    return None"])]
    chooser = Scope(program, [Var("rank", "rank", True), Var("world", "world")], depth=2)
    test = rank_condition(chooser) if defect else uniform_condition(chooser)
    return lines, f"hook = Loud() if {test} else Quiet()", Helper("hook.finish", form="method")
