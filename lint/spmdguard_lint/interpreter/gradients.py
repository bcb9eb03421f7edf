"""Gradients that one rank has and another has not: where a forward pass leaves a module out.

A parameter has no gradient after the backward pass of a batch that its module was not called for. As a rule that is so
on all ranks alike (a frozen or unused module), and a test of ``p.grad is None`` parts no ranks. Where a module of the
same file decides in its ``forward`` by the contents of a batch or by chance whether a submodule is called, it does.
So does a function that takes the modules to call out of a dict by the keys of its data (``policies[name](episodes)``).
So it does where the file wraps a model by FSDP with ``use_orig_params``: small parameters have all their elements on
some ranks, and the others see neither those nor a gradient.
"""

from __future__ import annotations

import ast

from ..names.dotted import called_name
from ..names.emptiness import asked_for_emptiness
from ..source.walking import walk
from ..values.value import NO_TAINT, NONE, Taint, Taints, Value
from .frame import Frame

_CONTENTS = frozenset(
    {"any", "all", "item", "sum", "numel", "nonzero", "max", "min", "count_nonzero", "tolist"}
)
_CHANCE = frozenset({"rand", "random", "uniform", "randint", "bernoulli", "choice", "randn", "randrange"})
_KEYED = frozenset({"items", "keys"})
_LEAVES = (ast.Continue, ast.Return, ast.Break)


def missing_gradient(frame: Frame, left: Value, right: Value) -> Taints:
    """Why ``parameter.grad is None`` may hold on one rank alone."""
    if right.key != NONE.key or left.tag != "expr" or left.data[0] != "attr:grad":
        return NO_TAINT
    cache = frame.machine.queues
    key = (id(frame.module), "<gradients>")
    if key not in cache:
        cache[key] = _skipped(frame) or _called_by_key(frame) or _in_pieces(frame)
    return cache[key]


def _skipped(frame: Frame) -> Taints:
    for cls in frame.module.all_classes:
        forward = cls.methods.get("forward")
        if forward is None or forward.self_name is None or not cls.is_module:
            continue
        for node in walk(forward.node):
            if not isinstance(node, (ast.If, ast.IfExp)) or not _skips(node, forward.self_name):
                continue
            if _asks(node.test) or _asks_for_input(node.test, forward.node):
                from .expressions import text_of

                text = f"`{text_of(node.test)}`, which decides whether a module takes part"
                return frozenset({Taint("data", frame.place(node.test), text, "likely")})
    return NO_TAINT


def _called_by_key(frame: Frame) -> Taints:
    """Modules called by the keys that a rank's data has: ``for name, x in episodes.items(): policies[name](x)``."""
    for function in frame.module.all_functions:
        if "](" not in function.text:
            continue
        arguments = {argument.arg for argument in function.node.args.args} - {function.self_name}
        for node in walk(function.node):
            keys = _keys_of(node, arguments)
            if keys is not None and any(_calls_item(part, keys[0]) for part in keys[1]):
                text = f"the keys of `{keys[2]}`, which decide what modules take part"
                return frozenset({Taint("data", frame.place(node), text, "likely")})
    return NO_TAINT


def _keys_of(node: ast.AST, arguments: set[str]) -> tuple[str, list[ast.stmt], str] | None:
    """The name that a loop over an argument gives its keys, the loop's body, and the argument."""
    if not isinstance(node, ast.For):
        return None
    over, target, plain = node.iter, node.target, True
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in _KEYED:
        if over.func.attr == "items" and isinstance(target, ast.Tuple):
            target = target.elts[0]
        over, plain = over.func.value, False
    if not isinstance(over, ast.Name) or over.id not in arguments or not isinstance(target, ast.Name):
        return None
    if plain and not any(_looks_up(part, over.id, target.id) for part in node.body):
        return None  # a list of names that the program is set up with, say
    return target.id, node.body, over.id


def _looks_up(part: ast.AST, name: str, key: str) -> bool:
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and isinstance(node.slice, ast.Name)
        and node.slice.id == key
        for node in walk(part)
    )


def _calls_item(part: ast.AST, key: str) -> bool:
    """Whether something is called that stands in a container of the object's own under a key."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and isinstance(node.func.slice, ast.Name)
        and node.func.slice.id == key
        for node in walk(part)
    )


def _in_pieces(frame: Frame) -> Taints:
    """FSDP with its parameters as they were: a rank that holds no piece of one has no gradient of it."""
    if not frame.module.contains(b"use_orig_params"):
        return NO_TAINT
    for node in walk(frame.module.tree):
        if not isinstance(node, ast.keyword) or node.arg != "use_orig_params":
            continue
        if isinstance(node.value, ast.Constant) and node.value.value is True:
            text = "which parameters a rank holds pieces of (use_orig_params)"
            return frozenset({Taint("data", frame.place(node.value), text, "likely")})
    return NO_TAINT


def _asks(test: ast.expr) -> bool:
    """Whether a test looks into tensors, or draws a number."""
    calls = [node for node in walk(test) if isinstance(node, ast.Call)]
    names = {called_name(call) for call in calls}
    return bool(names & (_CONTENTS | _CHANCE))


def _asks_for_input(test: ast.expr, forward: ast.AST) -> bool:
    """Whether a test asks if there is anything in an argument of the forward method."""
    arguments = {argument.arg for argument in getattr(getattr(forward, "args", None), "args", [])}
    return any(isinstance(one, ast.Name) and one.id in arguments for one in asked_for_emptiness(test))


def _skips(node: ast.If | ast.IfExp, self_name: str) -> bool:
    """Whether one arm alone calls submodules, or leaves before others are called."""
    arms = [node.body, node.orelse]
    parts: list[list[ast.AST]] = [list(arm) if isinstance(arm, list) else [arm] for arm in arms]
    calling = [any(_calls(part, self_name) for part in arm) for arm in parts]
    if calling[0] != calling[1]:
        return True
    return not any(calling) and any(bool(arm) and isinstance(arm[-1], _LEAVES) for arm in parts)


def _calls(part: ast.AST, self_name: str) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, (ast.Attribute, ast.Subscript))
        and _root(node.func) == self_name
        for node in walk(part)
    )


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
