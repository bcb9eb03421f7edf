"""Whole programs: the tables of productions, the frame of a script, and the two ways to draw one.

The *basic* fragment has functions, rank and uniform branches, loops, jumps, try statements and flag
reductions; the *full* one adds sub-groups, object collectives, asynchronous handles, methods, generators,
coroutines, context managers, match, decorators, nested functions and early exits in finally.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.lint.generated import branches, calls, collectives, data, handlers, helpers, loops, objects
from tests.lint.generated.draw import Draw, HypothesisDraw, RandomDraw
from tests.lint.generated.scope import Lines, Program, Scope, Var, indent
from tests.lint.generated.values import local_statement

Production = Callable[[Scope], Lines]
Table = tuple[tuple[int, Production], ...]

DEEPEST = 4
IMPORTS = (
    "import torch.distributed as dist",
    "import torch.distributed as td",
    "from torch import distributed",
)
MODULES = ("asyncio", "contextlib", "functools", "os", "sys", "time")
LOCAL_LEAVES: Table = ((6, local_statement), (2, loops.jump), (1, calls.call_shared))
LOCAL: Table = (
    *LOCAL_LEAVES,
    (2, branches.rank_if),
    (1, branches.uniform_if),
    (1, loops.for_loop),
    (1, loops.while_loop),
    (2, handlers.caught_locally),
    (1, handlers.common_trouble),
)
SHARED_LEAVES: Table = (
    (8, collectives.collective),
    (2, local_statement),
    (2, calls.call_shared),
    (2, loops.jump),
)
SHARED: Table = (
    *SHARED_LEAVES,
    (3, branches.rank_if),
    (2, branches.uniform_if),
    (2, branches.both_arms),
    (1, branches.complementary),
    (2, loops.for_loop),
    (1, loops.while_loop),
    (1, loops.voted_loop),
    (1, handlers.caught_locally),
    (1, handlers.common_trouble),
    (2, handlers.some_raise),
    (1, handlers.always_finally),
    (1, handlers.deferred),
)
DATA: Table = (
    (1, data.grown_list),
    (1, data.filled_dict),
    (1, data.pair),
    (1, data.text),
    (1, data.looked_up),
    (1, data.found_or_not),
    (1, data.left_in_try),
    (1, data.leaves_with_finally),
)
FULL_LOCAL: Table = (
    *LOCAL,
    *DATA,
    (1, branches.match_rank),
    (1, branches.walrus),
    (1, loops.comprehension),
)
FULL_SHARED: Table = (
    *SHARED,
    *DATA,
    (1, data.counted_by_closure),
    (1, data.called_back),
    (1, data.waits_later),
    (1, data.paired_loop),
    (1, data.matched_pair),
    (1, data.early_in_with),
    (1, branches.match_rank),
    (1, branches.walrus),
    (1, branches.short_circuit),
    (1, branches.nested_function),
    (1, loops.until_loop),
    (1, loops.comprehension),
    (1, handlers.exit_in_finally),
    (1, handlers.suppressed),
    (2, handlers.managed),
    (1, handlers.repeated),
    (1, calls.over_generator),
    (1, calls.awaited),
)


def block(scope: Scope, size: int) -> Lines:
    """A few statements that fit the scope, as far as the budget goes."""
    program = scope.program
    if scope.collectives:
        table = SHARED_LEAVES if scope.depth >= DEEPEST else FULL_SHARED if program.full else SHARED
    else:
        table = LOCAL_LEAVES if scope.depth >= DEEPEST else FULL_LOCAL if program.full else LOCAL
    lines: Lines = []
    for _ in range(program.draw.integer(1, size)):
        program.budget -= 1
        if program.budget >= 0:
            lines += program.draw.weighted(table)(scope)
    return lines or (collectives.plain(scope) if scope.collectives else local_statement(scope))


def _imports(program: Program) -> Lines:
    draw = program.draw
    style = draw.pick(IMPORTS)
    program.dist = style.split()[-1]
    lines = ["from datetime import timedelta", "", "import torch", style]
    if draw.chance(30):
        op = draw.pick(("barrier", "all_reduce"))
        program.aliases[op] = draw.pick(("meet", op))
        lines.append(f"from torch.distributed import {op} as {program.aliases[op]}")
    return [*lines, "", "class StepError(Exception):", "    pass", ""]


def _definitions(program: Program) -> Lines:
    """Zero to four definitions; later ones may call earlier ones."""
    draw = program.draw
    makers: list[tuple[int, Callable[[Program], Lines]]] = [
        (4, helpers.function),
        (2, helpers.predicate),
        (2, helpers.local_function),
    ]
    if program.full:
        makers += [(1, helpers.recursion), (1, helpers.generator), (2, helpers.manager)]
        makers += [(1, helpers.coroutine), (1, helpers.decorated), *objects.MAKERS]
    lines: Lines = []
    for _ in range(draw.integer(0, 3)):
        lines += [*draw.weighted(makers)(program), ""]
    return lines


def _start(program: Program) -> tuple[Lines, list[Var]]:
    """The first lines of the job and what they make visible."""
    dist, draw = program.dist, program.draw
    lines = [f'{dist}.init_process_group("gloo", timeout=timedelta(seconds=60))']
    names = [Var("rank", "rank", True), Var("world", "world")]
    form = draw.integer(0, 4)
    if form == 4:
        lines.append(f'state = {{"rank": {dist}.get_rank(), "world": {dist}.get_world_size()}}')
        names = [Var('state["rank"]', "rank", True), Var('state["world"]', "world")]
    elif form == 3:
        lines.append(f"rank, world = {dist}.get_rank(), {dist}.get_world_size()")
    elif form == 2:
        lines += ['rank = int(os.environ["RANK"])', f"world = {dist}.get_world_size()"]
    else:
        lines += [f"rank = {dist}.get_rank()", f"world = {dist}.get_world_size()"]
    if draw.chance(30):
        lines.append('mode = os.environ["MODE"]')
        lines.append('fast = mode == "fast"')
        names.append(Var("fast", "flag", False))
        program.fresh("fast")
    return lines, names


def _main(program: Program) -> Lines:
    """The job itself: a function called ``main``, or the body of the module."""
    draw = program.draw
    before: Lines = []
    program.as_module = as_module = draw.chance(15)
    start, names = _start(program)
    if program.full and draw.chance(35):
        definition, seen = helpers.runner_class(program)
        before += [*definition, ""]
        start.append(f"runner = Runner({names[0].text}, {names[1].text})")
        names += seen
    if program.full and draw.chance(10) and names[0].text == "rank":
        definition, line, helper = helpers.hierarchy(program)
        before += [*definition, ""]
        start.append(line)
        program.helpers.append(helper)
    program.in_main = True
    scope = Scope(program, names, jumps=frozenset() if as_module else frozenset({"return"}), depth=0)
    program.budget += draw.integer(3, 10)
    body = [*start, *scope.block(6)]
    body += calls.remaining(scope, "\n".join(body))
    if draw.chance(60):
        body.append(collectives.bare(scope))
    if draw.chance(90):
        body.append(f"{program.dist}.destroy_process_group()")
    if as_module:
        return [*before, *body]
    return [*before, "def main():", *indent(body), "", 'if __name__ == "__main__":', "    main()"]


def generate(draw: Draw, *, full: bool = True) -> str:
    """The source text of one program."""
    defects = draw.pick((0, 0, 30, 50, 75))
    program = Program(draw, full, defects, draw.integer(2, 14))
    program.block = block
    lines = [*_imports(program), *_definitions(program), *_main(program)]
    text = "\n".join(lines) + "\n"
    return "".join(f"import {name}\n" for name in MODULES if f"{name}." in text) + text


def from_seed(seed: int, index: int, *, full: bool = True) -> str:
    """Program ``index`` of the endless series ``seed``."""
    return generate(RandomDraw(f"{seed}:{index}:{full}"), full=full)


@st.composite
def programs(draw: st.DrawFn, full: bool = True) -> str:
    """The same grammar as a hypothesis strategy, which shrinks."""
    return generate(HypothesisDraw(draw), full=full)
