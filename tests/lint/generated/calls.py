"""Statements that call the program's own definitions."""

from __future__ import annotations

from tests.lint.generated.collectives import plain
from tests.lint.generated.scope import Helper, Lines, Scope, Var, indent
from tests.lint.generated.values import call, local_statement, rank_condition


def _callable_here(scope: Scope, form: str) -> list[Helper]:
    return [h for h in scope.program.helpers if h.form == form and (h.local or scope.collectives)]


def call_shared(scope: Scope) -> Lines:
    """Call a function or method that may perform collectives; its result may be kept."""
    forms = ["call", "own"] if not scope.program.in_main else ["call", "method"]
    helpers = [h for form in forms for h in _callable_here(scope, form)]
    if not helpers:
        return local_statement(scope)
    helper = scope.draw.pick(helpers)
    text = call(scope, helper)
    if helper.returns and scope.draw.chance(60):
        name = scope.program.fresh("answer")
        scope.names.append(Var(name, helper.returns, helper.varies))
        return [f"{name} = {text}"]
    if scope.collectives and not helper.local and scope.defect():
        return [f"if {rank_condition(scope)}:", *indent([text])]
    return [text]


def over_generator(scope: Scope) -> Lines:
    """A loop over a generator of the program's own."""
    helpers = _callable_here(scope, "generator")
    if not helpers:
        return call_shared(scope)
    helper, name = scope.draw.pick(helpers), scope.program.fresh("item")
    inside = scope.inner(
        add=(Var(name, "place", False),),
        jumps=scope.jumps | {"break", "continue"},
        loose=scope.loose - {"break"},
    )
    return [f"for {name} in {call(scope, helper)}:", *indent(inside.block(2))]


def awaited(scope: Scope) -> Lines:
    """Run a coroutine of the program's own to its end."""
    helpers = _callable_here(scope, "coroutine")
    if not helpers:
        return call_shared(scope)
    return [f"asyncio.run({call(scope, scope.draw.pick(helpers))})"]


def remaining(scope: Scope, text: str) -> Lines:
    """Use every definition that nothing else uses: an alarm on dead code would be nobody's mistake."""
    lines: Lines = []
    for helper in scope.program.helpers:
        if f"{helper.name}(" in text:
            continue
        expression = call(scope, helper)
        if helper.form == "generator":
            lines.append(f"list({expression})")
        elif helper.form == "manager":
            lines += [f"with {expression}:", *indent(plain(scope))]
        elif helper.form == "coroutine":
            lines.append(f"asyncio.run({expression})")
        else:
            lines.append(expression)
    return lines
