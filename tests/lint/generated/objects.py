"""Definitions that keep state or hand on: votes, meters, managers by state, generators of other forms."""

from __future__ import annotations

from tests.lint.generated.collectives import bare, trace
from tests.lint.generated.scope import Helper, Lines, Program, Scope, Var, indent
from tests.lint.generated.values import rank_condition, uniform_condition

RANK = Var("rank", "rank", True)


def vote(program: Program) -> Lines:
    """A function that asks all ranks and gives every one the same answer, or this rank's own."""
    name = program.fresh("agree")
    scope = Scope(program, [Var("flag", "flag", True)], depth=2)
    own = program.draw.chance(25)
    lines = [
        f"def {name}(flag):",
        "    answer = torch.tensor([1 if flag else 0])",
        f"    {scope.name('all_reduce')}(answer, op={program.dist}.ReduceOp.MAX)",
        f"    return {'flag' if own else 'answer.item() > 0'}",
    ]
    program.helpers.append(Helper(name, (Var("flag", "flag", True),), "flag", own))
    return lines


def meter(program: Program) -> Lines:
    """A class that counts: ranks may count differently, and one of its methods involves all of them."""
    draw = program.draw
    scope = Scope(program, [], depth=2)
    varies = draw.chance(50)
    test = rank_condition(scope) if varies else uniform_condition(scope)
    name, feed = program.fresh("Meter"), program.fresh("feed")
    methods = ["def __init__(self):", "    self.seen = 0", "def add(self):"]
    methods += [f"    if {test}:", "        self.seen += 1", "def __len__(self):", "    return self.seen"]
    methods += ["@staticmethod", "def word():", f"    return {test}"]
    methods += ["def __call__(self, times):", "    for _ in range(times):", "        self.add()"]
    end = draw.pick(("len(meter)", "meter.seen", "int(Meter.word())")).replace("Meter", name)
    lines = [f"class {name}:", *indent(methods), f"def {feed}(count):", f"    meter = {name}()"]
    lines += ["    meter(count)", f"    return {end}"]
    program.helpers.append(Helper(feed, (Var("count", "count", False),), "place", varies, local=True))
    return lines


def layers(program: Program) -> Lines:
    """A method that calls its parent's, with collectives in both or one."""
    name = program.fresh("build")
    scope = Scope(program, [RANK], depth=2)
    base, top = program.fresh("Base"), program.fresh("Top")
    lines = [f"class {base}:", *indent(["def make(self, rank):", *indent(trace(scope))])]
    inside = scope.arm() if program.draw.chance(30) else scope
    lines += [f"class {top}({base}):", "    def make(self, rank):"]
    lines += indent(indent(["super().make(rank)", *inside.block(1)]))
    program.helpers.append(Helper(name, (RANK,)))
    return [*lines, f"def {name}(rank):", f"    {top}().make(rank)"]


def gate(program: Program) -> Lines:
    """A context manager that swallows where its argument says so."""
    name = program.fresh("Gate")
    scope = Scope(program, [], depth=2)
    last = [bare(scope)] if program.draw.chance(30) else []
    methods = [
        "def __init__(self, open):",
        "    self.open = open",
        "def __enter__(self):",
        "    return self.open",
    ]
    methods += ["def __exit__(self, kind, value, trace):", *indent([*last, "return self.open"])]
    program.helpers.append(
        Helper(name, (Var("flag", "flag", False),), local=not last, form="manager", suppresses=True)
    )
    return [f"class {name}:", *indent(methods)]


def guarded_generator(program: Program) -> Lines:
    """A generator whose finally block runs when the consumer stops, or one that delegates to another."""
    name, scope = program.fresh("parts"), Scope(program, [], depth=2)
    if program.draw.chance(50):
        inner = program.fresh("inner")
        lines = [f"def {inner}(count):", "    for part in range(count):"]
        lines += [*indent(indent([*(trace(scope) if scope.defect() else []), "yield part"]))]
        lines += [f"def {name}(count):", f"    yield from {inner}(count)", *indent([bare(scope)])]
    else:
        lines = [f"def {name}(count):", "    part = 0", "    while part < count:"]
        lines += ["        part += 1", *indent(indent([*trace(scope), "yield part"]))]
    program.helpers.append(Helper(name, (Var("count", "count", False),), form="generator"))
    return lines


def several_results(program: Program) -> Lines:
    """A function that returns early with one pair of values and late with another."""
    name, wrap = program.fresh("probe"), program.fresh("ask")
    scope = Scope(program, [RANK, Var("flag", "flag", False)], depth=2)
    varies = program.draw.chance(50)
    test = rank_condition(scope) if varies else uniform_condition(scope)
    lines = [f"def {name}(rank, flag):", f"    if {test}:", "        return True, 1"]
    lines += ["    return False, 2", f"def {wrap}(rank, flag):", f"    ok, count = {name}(rank, flag)"]
    lines += [f"    return {program.draw.pick(('ok', 'count == 1', 'not ok and count > 1'))}"]
    program.helpers.append(Helper(wrap, (RANK, Var("flag", "flag", False)), "flag", varies, local=True))
    return lines


def failing(program: Program) -> Lines:
    """A function that raises under a condition, and one that calls it and answers whether it did."""
    draw = program.draw
    name, asks = program.fresh("attempt_to"), program.fresh("works")
    scope = Scope(program, [Var("rank", "rank", True)], depth=2)
    varies = draw.chance(50)
    test = rank_condition(scope) if varies else uniform_condition(scope)
    raised = draw.pick(("StepError", "ValueError"))
    lines = [f"def {name}(rank):", f"    if {test}:", f'        raise {raised}("no")', "    return 1"]
    body = [
        "try:",
        f"    return {name}(rank) == 1",
        f"except {draw.pick((raised, 'Exception'))}:",
        "    return False",
    ]
    program.helpers.append(Helper(asks, (RANK,), "flag", varies, local=True))
    return [*lines, f"def {asks}(rank):", *indent(body)]


MAKERS = (
    (2, vote),
    (1, meter),
    (1, layers),
    (1, gate),
    (1, guarded_generator),
    (1, several_results),
    (1, failing),
)
