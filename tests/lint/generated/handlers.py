"""Exceptions and context managers: raised by all or by some, caught, passed on, swallowed on the way."""

from __future__ import annotations

from tests.lint.generated.collectives import bare, trace
from tests.lint.generated.loops import leave
from tests.lint.generated.scope import Lines, Scope, Var, indent
from tests.lint.generated.values import call, local_statement, number, rank_condition, uniform_condition

RAISED = ("ValueError", "RuntimeError", "OSError", "StepError")
NOTHING: frozenset[str] = frozenset()


def _clause(scope: Scope, raised: str) -> str:
    """An except clause that catches ``raised``."""
    wide = {"StepError": "(StepError, OSError)", "ValueError": "(ValueError, KeyError)"}.get(raised, raised)
    return f"except {scope.draw.pick((raised, raised, wide, 'Exception'))}"


def _raise_if(test: str, raised: str) -> Lines:
    return [f"if {test}:", f'    raise {raised}("gone")']


def caught_locally(scope: Scope) -> Lines:
    """Some ranks raise, and catch it before anybody waits for them; what happened is kept in a flag."""
    raised = scope.draw.pick(RAISED)
    name = scope.program.fresh("broken")
    inside = scope.local()
    before = local_statement(inside) if scope.draw.chance(50) else []
    lines = [f"{name} = False", "try:", *indent([*before, *_raise_if(rank_condition(inside), raised)])]
    lines += [f"{_clause(scope, raised)}:", f"    {name} = True"]
    if scope.draw.chance(30):
        lines += ["else:", *indent(local_statement(scope.local()))]
    if scope.draw.chance(30):
        lines += ["finally:", *indent(local_statement(scope.local()))]
    scope.names.append(Var(name, "flag", True))
    return lines


def common_trouble(scope: Scope) -> Lines:
    """All ranks raise together, or none does."""
    raised = scope.draw.pick(RAISED)
    body = scope.inner(jumps=scope.jumps | {"raise"}, caught=(raised,))
    lines = ["try:", *indent([*body.block(2), *_raise_if(uniform_condition(scope), raised), *body.block(1)])]
    if scope.draw.chance(20):
        lines += ["except KeyError:", "    pass"]
    error = scope.program.fresh("error")
    lines += [f"{_clause(scope, raised)} as {error}:", *indent(_handler(scope, error))]
    if scope.draw.chance(25):
        lines += ["else:", *indent(scope.inner().block(1))]
    if scope.draw.chance(25):
        lines += ["finally:", *indent(scope.inner(jumps=NOTHING, loose=NOTHING).block(1))]
    return lines


def _handler(scope: Scope, error: str) -> Lines:
    inside = scope.inner()
    lines = inside.block(1)
    outs = sorted(scope.jumps)
    if outs and scope.draw.chance(40):
        kind = scope.draw.pick(outs)
        if kind == "raise":
            lines.append(
                scope.draw.pick(("raise", leave(scope, "raise"), f"{leave(scope, 'raise')} from {error}"))
            )
        else:
            lines.append(leave(inside, kind))
    return lines


def some_raise(scope: Scope) -> Lines:
    """Some ranks raise in front of collectives; the handler makes up for it, or does not (a defect)."""
    raised = scope.draw.pick(RAISED)
    calls = trace(scope)
    inside = scope.local()
    body = [*_raise_if(rank_condition(inside), raised), *calls]
    handler = [*local_statement(scope.local()), *calls]
    if scope.defect():
        handler = local_statement(scope.local())
        if scope.jumps and scope.draw.chance(40):
            handler.append(leave(scope, scope.draw.pick(sorted(scope.jumps))))
        if scope.draw.chance(30):
            body = [calls[0], *body]
    return ["try:", *indent(body), f"{_clause(scope, raised)}:", *indent(handler)]


def always_finally(scope: Scope) -> Lines:
    """A finally block with a collective, which every way out passes."""
    body = scope.inner().block(2)
    if scope.defect() and scope.jumps:
        body += [f"if {rank_condition(scope)}:", f"    {leave(scope, scope.draw.pick(sorted(scope.jumps)))}"]
        body.append(bare(scope))
    return ["try:", *indent(body), "finally:", *indent([bare(scope)])]


def exit_in_finally(scope: Scope) -> Lines:
    """A finally block that leaves: what was raised before is lost."""
    outs = sorted(scope.jumps - {"raise"})
    if not outs:
        return always_finally(scope)
    kind = scope.draw.pick(outs)
    raised = scope.draw.pick(RAISED)
    calls = trace(scope) if scope.defect() else []
    test = rank_condition(scope) if calls else uniform_condition(scope)
    if scope.draw.chance(40):
        end = [leave(scope, kind)]
        return [
            f"if {uniform_condition(scope)}:",
            *indent(["try:", *indent([*_raise_if(test, raised), *calls]), "finally:", *indent(end)]),
        ]
    end = [f"if {uniform_condition(scope)}:", f"    {leave(scope, kind)}"]
    body = scope.inner().block(1)
    if "raise" in scope.jumps:
        body = [*_raise_if(uniform_condition(scope), raised), *body]
    return ["try:", *indent(body), "finally:", *indent(end)]


def suppressed(scope: Scope) -> Lines:
    """``contextlib.suppress`` around local work; with a defect, around collectives."""
    raised = scope.draw.pick(RAISED)
    calls = trace(scope) if scope.defect() else local_statement(scope.local())
    test = rank_condition(scope)
    return [f"with contextlib.suppress({raised}, KeyError):", *indent([*_raise_if(test, raised), *calls])]


def managed(scope: Scope) -> Lines:
    """A block inside a context manager of the program's own."""
    managers = [h for h in scope.program.helpers if h.form == "manager" and (h.local or scope.collectives)]
    if not managers:
        return suppressed(scope)
    manager = scope.draw.pick(managers)
    lines = [f"with {call(scope, manager)}:"]
    if manager.suppresses and scope.defect():
        return [*lines, *indent([*_raise_if(rank_condition(scope), "StepError"), *trace(scope)])]
    if manager.suppresses and scope.draw.chance(50):
        return [
            *lines,
            *indent([*local_statement(scope.local()), *_raise_if(uniform_condition(scope), "StepError")]),
        ]
    return [*lines, *indent(scope.inner().block(2))]


def deferred(scope: Scope) -> Lines:
    """Keep a rank's error, meet the others, act on it together."""
    name, vote = scope.program.fresh("kept"), scope.program.fresh("bad")
    raised = scope.draw.pick(RAISED)
    test = rank_condition(scope.local())
    if scope.draw.chance(60):
        test = f"({test}) and {uniform_condition(scope)}"
    lines = [f"{name} = None", "try:", *indent(_raise_if(test, raised))]
    lines += [f"except {raised} as problem:", f"    {name} = problem"]
    if scope.defect():
        return [*lines, f"if {name} is None:", *indent(trace(scope))]
    lines += [f"{vote} = torch.tensor([0 if {name} is None else 1])", f"{scope.name('all_reduce')}({vote})"]
    scope.names.append(Var(f"{vote}.item()", "place", False))
    if scope.jumps and scope.draw.chance(50):
        lines += [f"if {vote}.item() > 0:", f"    {leave(scope, scope.draw.pick(sorted(scope.jumps)))}"]
    return lines


def repeated(scope: Scope) -> Lines:
    """Try again some times: uniform trouble, or local work only."""
    name = scope.program.fresh("attempt")
    inside = scope.inner(jumps=NOTHING, loose=NOTHING, add=(Var(name, "place", False),))
    body = [*_raise_if(f"{name} < {number(scope, False)} - 1", "OSError"), *inside.block(1), "break"]
    if scope.defect():
        body = [*_raise_if(f"{name} == 0 and {rank_condition(scope)}", "OSError"), bare(scope), "break"]
    return [f"for {name} in range(3):", *indent(["try:", *indent(body), "except OSError:", "    continue"])]
