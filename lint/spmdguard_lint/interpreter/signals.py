"""Signal handlers: what they change may have changed on one rank and not on another.

A handler runs at any moment after it was installed, or never. So its body is run where it is installed, and
the state from there on is one of both: with what it changed, or without, for a reason of kind "signal".
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..names.dotted import called_name
from ..source.walking import walk
from ..values.value import Taint, Value, symbol
from .frame import Frame
from .state import join

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo
    from ..names.modules import Module

_INSTALLERS = frozenset({"signal", "add_signal_handler"})
_HANDING = (b"signal.signal(", b"add_signal_handler(", b"atexit.register(", b"finalize(", b"num_workers=")
_CALLABLE = frozenset({"func", "wrapped", "bound", "partial"})


def install(frame: Frame, handler: Value, node: ast.AST, text: str) -> None:
    """``signal.signal(number, handler)``: from now on the handler may have run."""
    from .calls import call_value

    if handler.tag not in _CALLABLE or frame.state is None:
        return
    place = frame.place(node)
    before = frame.state.copy()
    arguments = [symbol(("signal-number", place)), symbol(("signal-frame", place))]
    with frame.collecting() as nodes:
        call_value(frame, handler, arguments, {}, node)
    frame.machine.in_handlers.setdefault(place, nodes)
    came = symbol(("signal", place), frozenset({Taint("signal", place, text)}))
    frame.state = join(frame.state, before, came)


def installs_handler(function: FunctionInfo) -> bool:
    """Whether the text of a function hands over a function to be run at a moment of its own, as a signal handler is."""
    words = [word.decode() for word in _HANDING if function.module.contains(word)]
    if not words:
        return False
    return any(word in function.text for word in words)


def handler_names(tree: ast.AST) -> frozenset[str]:
    """Names of the functions and methods that some call in a tree installs as signal handlers."""
    found: set[str] = set()
    for child in walk(tree):
        if not isinstance(child, ast.Call) or len(child.args) < 2:
            continue
        called = called_name(child)
        target = child.args[1]
        if called in _INSTALLERS and isinstance(target, (ast.Name, ast.Attribute)):
            found.add(target.attr if isinstance(target, ast.Attribute) else target.id)
    return frozenset(found)


def installed_in(frame: Frame, module: Module) -> frozenset[str]:
    """The same, for a whole file, remembered."""
    known = frame.machine.handlers.get(id(module))
    if known is None:
        installs = any(module.contains(word) for word in (b"signal.signal", b"add_signal_handler"))
        known = handler_names(module.tree) if installs else frozenset()
        frame.machine.handlers[id(module)] = known
    return known
