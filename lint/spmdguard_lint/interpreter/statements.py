"""Execute statements: each changes the frame's state and appends nodes to its trace tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..names.scopes import imported_names
from ..source.walking import walk
from ..traces.nodes import Branch, Jump, Tree
from ..traces.pointing import asks_for_finite
from ..values.evaluate import rank_dependent
from ..values.value import NO_TAINT, NONE, Value, is_const, negate, parts_of, retaint, symbol, union
from .agreed import note_agreed
from .assignment import assign, augmented
from .caches import fills
from .comparisons import existence
from .contents import whole
from .discarded import note_discarded
from .entries import even_out
from .expressions import evaluate, text_of, truthiness
from .frame import Frame
from .lazily import evaluate_lazily
from .lookup import symbol_value
from .narrowing import know_from_here, knowing
from .once import note_made_once
from .partly import note_partly_bound, note_partly_set
from .state import State, join
from .told import note_told

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def execute_block(frame: Frame, statements: Sequence[ast.stmt]) -> None:
    """Execute statements in order, until control cannot go on."""
    mark, narrowed = len(frame.path), frame.narrowed
    for statement in statements:
        if frame.state is None:
            break
        frame.machine.step()
        if frame.watchers:
            frame.watchers[-1].states.append(frame.state.copy())
        handler = _HANDLERS.get(type(statement))
        if handler is not None:
            handler(frame, statement)
    frame.narrowed = narrowed
    del frame.path[mark:]


def _expression(frame: Frame, node: ast.Expr) -> None:
    note_discarded(frame, evaluate(frame, node.value), node)


def _assign(frame: Frame, node: ast.Assign) -> None:
    value = evaluate_lazily(frame, node.value)
    for target in node.targets:
        assign(frame, target, value)


def _ann_assign(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(frame, node.target, evaluate_lazily(frame, node.value))


def _aug_assign(frame: Frame, node: ast.AugAssign) -> None:
    augmented(frame, node)


def run_arm(
    frame: Frame, state: State | None, condition: Value, holds: bool, body: Callable[[], None]
) -> tuple[Tree, State | None]:
    """Run one arm of a branch from a state; gives its nodes and the state after it."""
    frame.state = state
    mark = len(frame.path)
    frame.path.append((condition, holds))
    note_agreed(frame, condition, holds)
    with frame.collecting() as nodes:
        body()
    del frame.path[mark:]
    return nodes, frame.state


def branch(
    frame: Frame,
    node: ast.AST,
    condition: Value,
    then: Callable[[], None],
    orelse: Callable[[], None],
    form: str,
    text: str,
) -> None:
    """Execute a two-armed branch and append its node."""
    if is_const(condition):
        if frame.caller is not None:
            frame.machine.decided.add(frame.place(node))
        (then if condition.data[0] else orelse)()
        return
    if frame.state is None:
        return
    before = frame.state
    then_nodes, then_state = run_arm(frame, before.copy(), condition, True, then)
    else_nodes, else_state = run_arm(frame, before.copy(), condition, False, orelse)
    frame.state = join(then_state, else_state, condition)
    if then_state and else_state and isinstance(node, ast.If) and rank_dependent(condition):
        note_partly_bound(frame, node, condition, then_state, else_state)
        note_partly_set(frame, node, condition, then_state, else_state)
    if then_state and else_state and isinstance(node, ast.If) and condition.taint:
        even_out(frame, node, before, then_state, else_state)
        note_told(frame, node, (then_nodes, else_nodes), (then_state, else_state))
    if then_nodes or else_nodes or (condition.taint and _chooses_submodules(frame, node)):
        place = frame.place(node)
        judged = condition
        if form == "if" and frame.machine.says(frame.module, place.row, "protocol"):
            judged = symbol(("protocol", place))  # what the arms do is taken to be matched elsewhere
        frame.out.append(Branch(place, judged, then_nodes, else_nodes, form, text))
    if then_state is None and else_state is not None:
        frame.path.append((condition, False))
    elif else_state is None and then_state is not None:
        frame.path.append((condition, True))


def _chooses_submodules(frame: Frame, node: ast.AST) -> bool:
    """Whether a branch may leave a submodule out, whose exchange stands in the backward pass (SPG310)."""
    return isinstance(node, ast.If) and frame.function is not None and frame.function.name == "forward"


def _if(frame: Frame, node: ast.If) -> None:
    condition = truthiness(frame, node.test)
    if condition.taint and _asks_for_entry(frame, node):
        condition = retaint(condition, existence(condition.taint), condition.trip)
    if is_main_guard(frame, node.test):
        execute_block(frame, node.body)
        return
    mark = len(frame.out)
    branch(
        frame,
        node,
        condition,
        knowing(frame, node.test, lambda: execute_block(frame, node.body)),
        lambda: execute_block(frame, node.orelse),
        "if",
        text_of(node.test),
    )
    note_made_once(node, frame.out[mark:])
    if isinstance(node.body[-1], _LEAVING):
        know_from_here(frame, node.test)


def _asks_for_entry(frame: Frame, node: ast.If) -> bool:
    """``if key in mapping: ... mapping[key]``: a question about which entries there are, and not about contents."""
    test = node.test
    if (
        not isinstance(test, ast.Compare)
        or len(test.ops) != 1
        or not isinstance(test.ops[0], (ast.In, ast.NotIn))
    ):
        return False
    mapping, key = text_of(test.comparators[0]), text_of(test.left)
    if fills(frame, test.comparators[0], test.left):
        return False
    return any(
        isinstance(part, ast.Subscript) and text_of(part.value) == mapping and text_of(part.slice) == key
        for statement in (*node.body, *node.orelse)
        for part in walk(statement)
    )


def is_main_guard(frame: Frame, test: ast.expr) -> bool:
    """``if __name__ == "__main__"`` at module level."""
    return (
        frame.function is None
        and isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
    )


def _return(frame: Frame, node: ast.Return) -> None:
    value = evaluate_lazily(frame, node.value) if node.value is not None else NONE
    if frame.state is None:
        return
    frame.out.append(Jump(frame.place(node), "return", text_of(node), value=value))
    frame.returns.append((tuple(frame.path), _of_last_round(frame, node, value), frame.state))
    frame.state = None


def _of_last_round(frame: Frame, node: ast.Return, value: Value) -> Value:
    """A returned value; one that a loop changes until memory suffices is each rank's own."""
    why = NO_TAINT
    for loop in frame.loops:
        if loop.retried and loop.node is not None and node.value is not None:
            changed = frame.machine.stored_names(loop.node)
            used = (part.id for part in walk(node.value) if isinstance(part, ast.Name))
            why = why if changed.isdisjoint(used) else union(why, loop.retried)
    return retaint(value, union(value.taint, why), value.trip) if why else value


def _raise(frame: Frame, node: ast.Raise) -> None:
    value = evaluate(frame, node.exc) if node.exc is not None else NONE
    if frame.state is None:
        return
    name = _lineage(frame, value) or exception_name(node.exc, value)
    if node.exc is None and frame.handled:
        name = frame.handled[-1][0]
    elif isinstance(node.exc, ast.Name) and any(bound.key == value.key for _, bound in frame.handled):
        name = next(n for n, bound in frame.handled if bound.key == value.key)
    frame.record_raise(name, whole(frame, value).taint)
    frame.out.append(Jump(frame.place(node), "raise", text_of(node), name, value))
    frame.state = None


def _lineage(frame: Frame, value: Value) -> str:
    """The names of a project's exception class and of its ancestors, joined by bars; "" for any other value."""
    cls = None
    if value.tag == "class":
        cls = value.data[0]
    elif value.tag == "obj":
        cls = frame.machine.objects.info(value).cls
    if cls is None:
        return ""
    names = [one.name for one in cls.mro()]
    return "|".join([*names, *(base.rpartition(".")[2] for base in cls.external_bases())])


def exception_name(node: ast.expr | None, value: Value) -> str:
    """The class name of what a raise statement raises, or "" when unknown."""
    target: Any = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute):
        return target.attr
    if isinstance(target, ast.Name) and target.id[:1].isupper():
        return target.id
    return ""


def _break(frame: Frame, node: ast.Break) -> None:
    if frame.loops and frame.state is not None:
        loop = frame.loops[-1]
        loop.breaks.append((frame.state, union(frame.path_taint(loop.path_length), loop.retried)))
        loop.last = union(loop.last, loop.retried)
        frame.out.append(Jump(frame.place(node), "break", "break"))
    frame.state = None


def _continue(frame: Frame, node: ast.Continue) -> None:
    if frame.loops and frame.state is not None:
        loop = frame.loops[-1]
        loop.continues.append((frame.state, frame.path_taint(loop.path_length)))
        frame.out.append(Jump(frame.place(node), "continue", "continue"))
    frame.state = None


def _assert(frame: Frame, node: ast.Assert) -> None:
    """An assertion is taken to hold, but for one on what a run comes to: that a number is finite is no precondition."""
    condition = truthiness(frame, node.test)
    if is_const(condition) and condition.data[0]:
        return

    def in_finite_test(condition: Value) -> bool:
        """Whether it fails always, and stands below a test for numbers that are not finite."""
        tests = (part for test, _ in frame.path for part in parts_of(test) if part.tag == "expr")
        return is_const(condition) and any(asks_for_finite(str(part.data[0])) for part in tests)

    def fail() -> None:
        kind = "raise" if asks_for_finite(text_of(node)) or in_finite_test(condition) else "assert"
        frame.out.append(Jump(frame.place(node), kind, text_of(node), "AssertionError"))
        frame.state = None

    branch(frame, node, negate(condition), fail, lambda: None, "assert", text_of(node.test))


def _function_def(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    from .closures import define_function

    if frame.state is not None:
        if frame.function is not None:
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None and not isinstance(default, ast.Constant):
                    frame.defaults[id(default)] = evaluate(frame, default)
        value = define_function(frame, node)
        frame.live.variables[node.name] = value


def _class_def(frame: Frame, node: ast.ClassDef) -> None:
    if frame.state is not None:
        cls = frame.module.class_for(node)
        frame.state.variables[node.name] = Value("class", (cls,))
        if frame.function is not None:
            _class_fields(frame, node, ("class", id(cls)))


def _class_fields(frame: Frame, node: ast.ClassDef, object_id: object) -> None:
    """The fields of a class inside a function, which may be made of the function's own values."""
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            value = evaluate(frame, statement.value)
            for target in statement.targets:
                if isinstance(target, ast.Name) and not is_const(value):
                    frame.live.set_field(object_id, target.id, value)


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            from .container_methods import delete_item

            delete_item(frame, evaluate(frame, target.value), evaluate(frame, target.slice), node)
        if isinstance(target, ast.Name) and frame.state is not None:
            frame.state.variables.pop(target.id, None)


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    from .loops import execute_for

    execute_for(frame, node)


def _while(frame: Frame, node: ast.While) -> None:
    from .linked import walked
    from .loops import execute_while

    if not walked(frame, node):
        execute_while(frame, node)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    from .withs import execute_with

    execute_with(frame, node)


def _try(frame: Frame, node: Any) -> None:
    from .tries import execute_try

    execute_try(frame, node)


def _match(frame: Frame, node: ast.Match) -> None:
    subject = evaluate(frame, node.subject)
    _match_cases(frame, node, subject, 0)


def _match_cases(frame: Frame, node: ast.Match, subject: Value, position: int) -> None:
    if position >= len(node.cases):
        return
    from .patterns import bind_pattern, pattern_condition

    case = node.cases[position]
    condition = pattern_condition(frame, case.pattern, subject)
    if case.guard is not None:
        bind_pattern(frame, case.pattern, subject)
        from .comparisons import logic

        condition = logic("and", [condition, truthiness(frame, case.guard)])

    def then() -> None:
        bind_pattern(frame, case.pattern, subject)
        execute_block(frame, case.body)

    branch(
        frame,
        case.pattern,
        condition,
        then,
        lambda: _match_cases(frame, node, subject, position + 1),
        "match",
        f"{text_of(node.subject)} matches {text_of(case.pattern)}",
    )


def _import(frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    """Imports are resolved by name when used, but for names that the function assigns, too."""
    if frame.state is None:
        return
    module = frame.module
    rebound = frame.function.scope.rebound if frame.function is not None else frozenset[str]()
    for name, meaning in imported_names(node, module.name, module.is_package):
        if name in rebound:
            frame.state.variables[name] = symbol_value(
                frame, frame.machine.project.resolve_import(module, meaning), meaning
            )
        else:
            frame.state.variables.pop(name, None)


_HANDLERS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.If: _if,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Assert: _assert,
    ast.FunctionDef: _function_def,
    ast.AsyncFunctionDef: _function_def,
    ast.ClassDef: _class_def,
    ast.Delete: _delete,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.Import: _import,
    ast.ImportFrom: _import,
}
if hasattr(ast, "TryStar"):
    _HANDLERS[ast.TryStar] = _try
