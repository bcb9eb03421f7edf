"""Hooks that the program registers on modules: from then on they run in each forward pass of a wrapped model.

On which module one is registered is not told apart: a hook sees this rank's own batch in any of them. The hooks stand
on the heap, so that they are there where the registration was come to. That one is removed later is not seen.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..values.value import Taint, Value, symbol
from .expressions import text_of

if TYPE_CHECKING:
    from .frame import Frame

REGISTERING = {
    "register_forward_pre_hook": 2,
    "register_forward_hook": 3,
}
_HOOKS = "hooks of forward passes"
_CALLABLE = frozenset({"func", "wrapped", "bound", "partial", "obj"})
_MOST = 4


def note_registered(
    frame: Frame, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> None:
    """Remember the hook that a module is given."""
    hook = args[0] if args else kwargs.get("hook")
    if hook is not None and hook.tag in _CALLABLE and frame.state is not None:
        frame.state.set_field(_HOOKS, f"{REGISTERING[name]} {frame.place(node)}", hook)
        frame.machine.calls.cells.add(_HOOKS)


def run_registered(frame: Frame, node: ast.AST) -> None:
    """Run the hooks in a forward pass: what a hook is given is this rank's own data."""
    from .calls import call_value

    if frame.state is None:
        return
    place, text = frame.place(node), text_of(node)
    own = frozenset({Taint("data", place, text, "likely")})
    given = [
        symbol(("hook", place, "module")),
        *(symbol(("hook", place, name), own) for name in ("in", "out")),
    ]
    for key, hook in sorted(frame.state.heap.fields(_HOOKS).items())[:_MOST]:
        if frame.state is not None:
            call_value(frame, hook, given[: int(key[0])], {}, node)
