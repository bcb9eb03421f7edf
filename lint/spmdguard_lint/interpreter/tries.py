"""Try statements: handlers run from any state that the body may have been left in."""

from __future__ import annotations

import ast
from typing import Any

from ..names.dotted import called_name
from ..source.walking import walk
from ..traces.catching import OUT_OF_MEMORY, is_caught
from ..traces.nodes import Branch, Fallible, Handler, Jump, Op, Tree, Try, every_node
from ..values.value import NO_TAINT, OF_MEMORY, Place, Taint, Taints, Value, symbol, union
from .exits import Exits
from .frame import Frame, Watch
from .outcomes import given_inside
from .state import State, join
from .statements import execute_block


def execute_try(frame: Frame, node: Any) -> None:
    """A try statement (or ``except*``)."""
    if frame.state is None:
        return
    if not node.finalbody:
        body, handlers, orelse = _guarded(frame, node)
        final: Tree = []
    else:
        exits = Exits(frame)
        body, handlers, orelse = _guarded(frame, node)
        with frame.collecting() as final:
            exits.pass_through(lambda: execute_block(frame, node.finalbody), frame.place(node))
    if body or handlers or final or orelse:
        frame.out.append(Try(frame.place(node), body, handlers, orelse, final))


def _guarded(frame: Frame, node: Any) -> tuple[Tree, list[Handler], Tree]:
    """The body with its handlers and its else block."""
    place = frame.place(node)
    watch = Watch(frame.live.copy(), len(frame.path), [handler_names(c.type) for c in node.handlers])
    num_returns = len(frame.returns)
    memory = _memory(node, place)
    around = frame.loops[-1] if memory and frame.loops and _retries(node) else None
    before = NO_TAINT if around is None else around.retried
    if around is not None:
        around.retried = union(before, memory)
    frame.watchers.append(watch)
    with frame.collecting() as body:
        execute_block(frame, node.body)
    frame.watchers.pop()
    body_state = frame.state
    with frame.collecting() as orelse:
        if body_state is not None:
            execute_block(frame, node.orelse)
    if around is not None and not _retries(node, ast.Continue):
        around.retried = before  # behind the statement a rank is in the same round with and without the error
    after: State | None = frame.state
    raised = _raised_state(watch, body_state, place) if node.handlers else None
    handlers: list[Handler] = []
    why = frozenset({Taint("exception", place, "an exception in the try body", _certainty(node, body))})
    condition = symbol(
        ("raised", place), NO_TAINT if _asks_for_package(node) or _asks_for_form(node, body) else why
    )
    _returns_unless_raised(
        frame, num_returns, watch, place, union(memory, condition.taint if _may_raise(body) else NO_TAINT)
    )
    for clause in node.handlers:
        assert raised is not None
        names = handler_names(clause.type)
        frame.state = raised.copy()
        caught = [one for one in watch.raises if is_caught(names, one.name)]
        told = union(condition.taint, *(union(one.taint, one.value) for one in caught))
        bound = symbol(("exception", frame.place(clause)), told)
        if clause.name:
            frame.state.variables[clause.name] = bound
        frame.handled.append((_raised_name(watch, names), bound))
        with frame.collecting() as nodes:
            frame.path.append((condition, True))
            execute_block(frame, clause.body)
            if frame.path and frame.path[-1][0] is condition:
                frame.path.pop()
        frame.handled.pop()
        handlers.append(Handler(frame.place(clause), names, nodes, _clause_text(clause)))
        after = join(frame.state, after, condition)
    frame.state = after
    for one in watch.raises:
        if not watch.catches(one.name):
            frame.hand_on(one)
    return body, handlers, orelse


def _retries(node: Any, way: type[ast.stmt] | None = None) -> bool:
    """Whether a clause for exhausted memory outlives it; ``way`` is how all that do leave."""
    clauses = [clause for clause in node.handlers if _of_memory(clause)]
    last = [c.body[-1] for c in clauses if not isinstance(c.body[-1], (ast.Raise, ast.Return, ast.Break))]
    return bool(last) and (way is None or all(isinstance(one, way) for one in last))


def _memory(node: Any, place: Place) -> Taints:
    """Why one rank alone comes to a clause that is for exhausted memory, if there is one."""
    if not any(_of_memory(clause) for clause in node.handlers):
        return NO_TAINT
    return frozenset({Taint("exception", place, OF_MEMORY, "likely")})


def _of_memory(clause: ast.ExceptHandler) -> bool:
    """Whether a clause is for exhausted memory, by the class or by the message that it looks for."""
    if any(name in OUT_OF_MEMORY for name in handler_names(clause.type)):
        return True
    texts = (part.value for part in walk(clause) if isinstance(part, ast.Constant))
    return any(isinstance(text, str) and "out of memory" in text.lower() for text in texts)


def _returns_unless_raised(
    frame: Frame, num_returns: int, watch: Watch, place: object, unsaid: Taints
) -> None:
    """A return in the body happens where nothing that a clause catches was raised before it.

    What is ``unsaid`` is why one rank alone may raise what the program does not raise itself.
    """
    caught = [one for one in watch.raises if watch.catches(one.name)]
    if caught or (unsaid and watch.clauses):
        raised = symbol(("raised", place), union(unsaid, *(one.taint for one in caught)))
        given_inside(frame, num_returns, watch.since, raised, holds=False)


def _raised_name(watch: Watch, names: tuple[str, ...]) -> str:
    """The class that a clause catches: the one that its body raises, or the one that the clause names."""
    raised = {one.name for one in watch.raises if one.name and is_caught(names, one.name)}
    if len(raised) == 1:
        return raised.pop()
    return names[0] if len(names) == 1 else "|".join(names)


_ONE_RANK = frozenset(
    [
        "",
        "BaseException",
        "Exception",
        "RuntimeError",
        "OutOfMemoryError",
        "OSError",
        "IOError",
        "EOFError",
        "FileNotFoundError",
        "FileExistsError",
        "PermissionError",
        "ConnectionError",
        "TimeoutError",
        "HTTPError",
        "UnpicklingError",
    ]
)


def _certainty(node: Any, body: Tree) -> str:
    """How likely one rank alone comes into a handler: an import that fails, fails on every rank alike."""
    going_on = [clause for clause in node.handlers if not isinstance(clause.body[-1], ast.Raise)]
    clauses = going_on or node.handlers  # what is raised again leaves nothing behind
    names = [
        name
        for clause in clauses
        if not _asks_for_message(clause)
        for name in handler_names(clause.type) or ("Exception",)
    ]
    if any(name in _ONE_RANK for name in names) or _varies(body):
        return "likely"
    return "possible"


def _asks_for_message(clause: ast.ExceptHandler) -> bool:
    """Whether a clause is for one message (`if "not supported" not in str(error): raise`): what no rank can have.

    Memory is: it runs out on one rank.
    """
    if clause.name is None or _of_memory(clause):
        return False
    tests = [one for one in clause.body if isinstance(one, ast.If) and isinstance(one.body[-1], ast.Raise)]
    asked = (part for test in tests for part in walk(test.test) if isinstance(part, ast.Call))
    return any(called_name(call) == "str" and _names(call, clause.name) for call in asked)


def _names(call: ast.Call, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in call.args)


def _asks_for_package(node: Any) -> bool:
    """Whether a try statement only imports, and does without what is not installed: the same on every rank."""
    imports = [one for one in node.body if isinstance(one, (ast.Import, ast.ImportFrom))]
    others = [one for one in node.body if one not in imports]
    if not imports or not all(isinstance(one, (ast.Assign, ast.Return)) for one in others):
        return False
    return all(one.value is None or isinstance(one.value, (ast.Constant, ast.Name)) for one in others)


def _may_raise(body: Tree) -> bool:
    """Whether a try body calls anything that may raise without the program's own doing."""
    return any(isinstance(node, (Fallible, Op)) for node in every_node(body))


_OF_FORM = frozenset({"len", "getattr", "hasattr", "isinstance", "issubclass", "type", "callable"})


def _asks_for_form(node: Any, body: Tree) -> bool:
    """Whether a try statement only asks for a length or an attribute: objects have one on every rank, or on none."""
    if not all(isinstance(one, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)) for one in node.body):
        return False
    parts = [part for one in node.body for part in walk(one)]
    asks = [part for part in parts if isinstance(part, (ast.Call, ast.Attribute)) and _is_read(part)]
    plain = all(
        isinstance(part.func, ast.Name) and part.func.id in _OF_FORM
        for part in parts
        if isinstance(part, ast.Call)
    )
    others = any(isinstance(part, (ast.Subscript, ast.BinOp, ast.Await, ast.Yield)) for part in parts)
    return bool(asks) and plain and not others and all(isinstance(one, Jump) for one in body)


def _is_read(part: ast.Call | ast.Attribute) -> bool:
    return isinstance(part, ast.Call) or isinstance(part.ctx, ast.Load)


def _varies(body: Tree) -> bool:
    """Whether a try body holds something that fails on one rank alone: files, networks, rank-varying raises."""
    for node in body:
        if isinstance(node, Fallible) and node.io:
            return True
        if isinstance(node, Branch) and node.condition.taint:
            return True
        if any(_varies(child) for child in node.subtrees()):
            return True
    return False


def _raised_state(watch: Watch, body_state: State | None, place: object) -> State:
    """The state in which a handler starts: any of those seen while the body ran."""
    states = watch.states
    if len(states) > 12:
        states = [states[0], *states[1 :: max(1, len(states) // 10)], states[-1]]
    result: State | None = None
    for state in states:
        result = join(state, result, symbol((place, "point")))
    caught = [one for one in watch.raises if watch.catches(one.name)]
    point = symbol((place, "point"), union(*(one.taint for one in caught)))
    for one in caught:
        result = join(one.state, result, point)
    if body_state is not None:
        result = join(body_state, result, symbol((place, "point")))
    assert result is not None
    return result.copy()


def handler_names(node: ast.expr | None) -> tuple[str, ...]:
    """The class names that an except clause catches; empty means everything."""
    if node is None:
        return ()
    if isinstance(node, ast.Tuple):
        found: list[str] = []
        for item in node.elts:
            found.extend(handler_names(item) or ("",))
        return tuple(found)
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    return ("",)


def _clause_text(clause: ast.ExceptHandler) -> str:
    from .expressions import text_of

    return f"except {text_of(clause.type)}" if clause.type is not None else "except"


def exception_taint(value: Value) -> bool:
    """Whether a value depends on whether an exception was raised."""
    return any(t.kind == "exception" for t in value.taint)
