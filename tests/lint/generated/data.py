"""Local data of other kinds than plain numbers: lists, dicts, tuples, texts, closures, nested conditions."""

from __future__ import annotations

from tests.lint.generated.collectives import bare, trace
from tests.lint.generated.loops import leave
from tests.lint.generated.scope import Lines, Scope, Var, indent
from tests.lint.generated.values import (
    call,
    condition,
    number,
    rank_condition,
    rank_text,
    uniform_condition,
    world_text,
)

NOTHING: frozenset[str] = frozenset()


def grown_list(scope: Scope) -> Lines:
    """A list that grows under a condition; its length and whether it is empty are kept."""
    draw, varies = scope.draw, scope.draw.chance(50)
    name = scope.program.fresh(draw.pick(("items", "found")))
    test = condition(scope, varies)
    if draw.chance(50):
        lines = [f"{name} = []", f"if {test}:", f"    {name}.append({number(scope, False)})"]
    else:
        lines = [f"{name} = []", f"for k in range({number(scope, False)}):"]
        lines += [f"    if {test}:", f"        {name}.append(k)"]
    scope.names.append(Var(f"len({name})", "place", varies))
    scope.names.append(Var(f"bool({name})", "flag", varies))
    return lines


def filled_dict(scope: Scope) -> Lines:
    """A dict with a common and a rank's own entry; one of them is written again under a condition."""
    draw = scope.draw
    name, varies = scope.program.fresh("settings"), draw.chance(50)
    lines = [f'{name} = {{"own": {number(scope, True)}, "all": {number(scope, False)}}}']
    if draw.chance(40):
        lines += [f"if {condition(scope, varies)}:", f'    {name}["all"] = {number(scope, False)}']
    else:
        varies = False
    scope.names.append(Var(f'{name}["own"]', "place", True))
    scope.names.append(Var(f'{name}["all"]', "place", varies))
    return lines


def pair(scope: Scope) -> Lines:
    """Two names from one tuple, perhaps the wrong way round."""
    draw = scope.draw
    first, second = scope.program.fresh("left"), scope.program.fresh("right")
    parts = [number(scope, False), number(scope, True)]
    lines = [f"{first}, {second} = {parts[0]}, {parts[1]}"]
    swapped = draw.chance(30)
    if swapped:
        lines.append(f"{first}, {second} = {second}, {first}")
    scope.names.append(Var(first, "place", swapped, changes=True))
    scope.names.append(Var(second, "place", not swapped, changes=True))
    return lines


def text(scope: Scope) -> Lines:
    """A word that says who this rank is, or how the job was started."""
    varies = scope.draw.chance(50)
    name = scope.program.fresh("role")
    lines = [f'{name} = "lead" if {condition(scope, varies)} else "rest"']
    scope.names.append(Var(f'({name} == "lead")', "flag", varies))
    return lines


def looked_up(scope: Scope) -> Lines:
    """A value chosen by an index, a minimum, a question to all or any."""
    draw, varies = scope.draw, scope.draw.chance(50)
    name = scope.program.fresh("verdict")
    value = number(scope, varies)
    line = draw.pick(
        (
            f"{name} = (True, False)[({value}) % 2]",
            f"{name} = [False, True][({value}) % 2]",
            f"{name} = min({value}, 1) == 1",
            f"{name} = any(k == {value} for k in range(2))",
            f"{name} = all(k < {value} for k in range(2))",
            f"{name} = {value} in [1, 3]",
            f'{name} = str({value}) == "1"',
            f"{name} = bool({value} & 1)",
        )
    )
    scope.names.append(Var(name, "flag", varies, changes=True))
    return [line]


def counted_by_closure(scope: Scope) -> Lines:
    """A nested function that counts in a name of the function around it."""
    if scope.settled or (scope.program.in_main and scope.program.as_module):
        return grown_list(scope)
    varies = scope.draw.chance(50)
    name, function = scope.program.fresh("tally"), scope.program.fresh("count_up")
    call = [f"{function}()"]
    lines = [f"{name} = 0", f"def {function}():", f"    nonlocal {name}", f"    {name} += 1"]
    if varies:
        call = [f"if {rank_condition(scope)}:", f"    {function}()"]
    scope.names.append(Var(name, "place", varies))
    return [*lines, *call]


def called_back(scope: Scope) -> Lines:
    """A function that is handed over, kept in a list, or bound to its argument."""
    draw = scope.draw
    name = scope.program.fresh("task")
    calls = trace(scope)
    lines = [f"def {name}(flag):", *indent(["if flag:", *indent(calls)])]
    argument = rank_condition(scope) if scope.defect() else uniform_condition(scope)
    form = draw.integer(0, 3)
    if form == 0:
        return [*lines, f"bound = functools.partial({name}, {argument})", "bound()"]
    if form == 1:
        return [*lines, f"for each in [{name}]:", f"    each({argument})"]
    if form == 2:
        test = rank_condition(scope) if scope.defect() else uniform_condition(scope)
        return [*lines, f"chosen = {name} if {test} else print", f"chosen({argument})"]
    return [*lines, f"{name}(flag={argument})"]


def waits_later(scope: Scope) -> Lines:
    """Handles in a list, or one that not every rank waits for: nobody else waits for that."""
    draw = scope.draw
    name = scope.program.fresh("handles")
    if draw.chance(50):
        op = f"{scope.name('all_reduce')}(torch.zeros(1), async_op=True)"
        lines = [f"{name} = [{op} for _ in range({number(scope, False)})]"]
        return [*lines, f"for handle in {name}:", "    handle.wait()"]
    lines = [f"{name} = {scope.name('barrier')}(async_op=True)"]
    if scope.defect():
        return [f"if {rank_condition(scope)}:", *indent(lines), *indent([f"{name}.wait()"])]
    return [*lines, f"if {condition(scope, draw.chance(50))}:", f"    {name}.wait()", bare(scope)]


def found_or_not(scope: Scope) -> Lines:
    """A search with break and else; what it finds is kept."""
    varies = scope.draw.chance(50)
    name, value = scope.program.fresh("hit"), number(scope, varies)
    lines = [f"for k in range({number(scope, False)}):", f"    if k == {value}:", f"        {name} = True"]
    lines += ["        break", "else:", f"    {name} = False"]
    scope.names.append(Var(name, "flag", varies, changes=True))
    return lines


def paired_loop(scope: Scope) -> Lines:
    """A loop over pairs, in the forms that Python offers."""
    first, second = scope.program.fresh("place"), scope.program.fresh("part")
    varies = scope.defect()
    count = number(scope, varies)
    head = scope.draw.pick(
        (
            f"for {first}, {second} in enumerate(range({count})):",
            f"for {first}, {second} in zip(range({count}), range(2)):",
            f"for {first}, {second} in enumerate([0, 1]):",
        )
    )
    inside = scope.inner(
        add=(Var(first, "place", varies), Var(second, "place", varies)),
        jumps=scope.jumps | {"break", "continue"},
        loose=scope.loose - {"break", "continue"},
    )
    return [head, *indent(inside.block(2))]


def matched_pair(scope: Scope) -> Lines:
    """A match statement on two values at once."""
    draw = scope.draw
    cases = [
        draw.pick(("case (0, _):", "case (_, 2):", "case (0, 2) | (1, 3):", "case (a, b) if a < b:")),
        draw.pick(("case (_, 3):", "case (1, _):", "case [first, *rest]:")),
        "case _:",
    ]
    lines = [f"match ({rank_text(scope)}, {world_text(scope)}):"]
    for case in cases:
        lines += indent([case, *indent(scope.arm().block(1))])
    return lines


def left_in_try(scope: Scope) -> Lines:
    """Values that are set between the places at which a try body may be left."""
    draw, varies = scope.draw, scope.draw.chance(60)
    name = scope.program.fresh("stage")
    raised = draw.pick(("ValueError", "OSError"))
    lines = [f"{name} = 0", "try:", f"    if {condition(scope, varies)}:", f'        raise {raised}("early")']
    lines += [f"    {name} = 1", *indent([f'raise {raised}("late")'] if draw.chance(40) else [])]
    lines += [f"except {raised}:"]
    lines += indent([f"{name} += 2"] if draw.chance(40) else ["pass"])
    scope.names.append(Var(name, "place", varies, changes=True))
    return lines


def leaves_with_finally(scope: Scope) -> Lines:
    """A loop that is left in a try whose finally block sets something."""
    draw, varies = scope.draw, scope.draw.chance(50)
    name = scope.program.fresh("ended")
    test = condition(scope, varies)
    out = draw.pick(("break", "continue"))
    lines = [f"{name} = 0", "for k in range(2):", "    try:", f"        if {test}:", f"            {out}"]
    lines += [f"        {name} += 1", "    finally:"]
    if draw.chance(50):
        lines += ["        last = k"]
    else:
        lines += [f"        {name} = {name} + 2"]
    scope.names.append(Var(name, "place", varies))
    return lines


def early_in_with(scope: Scope) -> Lines:
    """Leave from inside a with statement."""
    managers = [h for h in scope.program.helpers if h.form == "manager" and (h.local or scope.collectives)]
    if not managers or not scope.jumps - {"raise"}:
        return left_in_try(scope)
    manager = scope.draw.pick(managers)
    kind = scope.draw.pick(sorted(scope.jumps - {"raise"}))
    test = rank_condition(scope) if scope.defect() else uniform_condition(scope)
    body = [*scope.inner(jumps=NOTHING, loose=NOTHING).block(1), f"if {test}:", f"    {leave(scope, kind)}"]
    return [f"with {call(scope, manager)}:", *indent([*body, bare(scope)])]
