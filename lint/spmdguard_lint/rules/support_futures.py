"""Asynchronous saves whose future nobody asks for at the end.

Terminology: the *last* save of a run is the one after which no other begins. A step *asks* for it where it waits for a
future, or calls something whose name says that it ends or waits for what is under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..traces.nodes import Branch, Call, Event, Fallible, Node, Op, Tree, every_node
from .support_trees import Step, steps

ASYNC_SAVE = "checkpoint.async_save"
_ENDS = re.compile(
    r"wait|result|exception|finali[sz]e|finish|close|join|shutdown|flush|done|drain|synchron|teardown|complete|stop|as_completed"
)
_ENDS_ALL = re.compile(r"wait|finali[sz]e|finish|close|join|shutdown|flush|drain|synchron|teardown")
_THERE = re.compile(r"(?:not )?([\w.\[\]'\"]+)(?: is(?: not)? None)?")
_RUNNING = re.compile(r"\(?not [\w.]+\.done\(\)\)?")


def left_at_the_end(tree: Tree) -> Iterator[tuple[Step, Op]]:
    """The last asynchronous saves of a run that destroys its group with nothing asking for them before."""
    last: tuple[Step, Op] | None = None
    for step in steps(tree):
        node = step.node
        if isinstance(node, Op) and node.name == ASYNC_SAVE:
            last = (step, node)
        elif last is None:
            continue
        elif isinstance(node, Op) and node.name == "destroy_process_group":
            yield last
            last = None
        elif asks(node):
            last = None


def asks(node: Node) -> bool:
    """Whether a step asks for what is under way."""
    if isinstance(node, Event) and node.name in ("wait", "thread-join"):
        return True
    if isinstance(node, (Call, Fallible, Event)):
        called = node.text.partition("(")[0].rpartition(".")[2]
        return _ENDS.search(called.lower()) is not None
    return False


def ends_all(node: Call) -> bool:
    """Whether the name of a function that was followed says that it waits for all that is under way."""
    return _ENDS_ALL.search(node.name.rpartition(".")[2].lower()) is not None


def waits_for_any(node: Branch, holds: bool) -> bool:
    """Whether an arm is the one without a future, of a test whether there is one: the other arm waits for it.

    A call on a name that may be None or a future is such a test, too.
    """
    arm, other = (node.then, node.orelse) if holds else (node.orelse, node.then)
    if any(asks(inner) for inner in every_node(arm)):
        return False
    waits = [getattr(inner, "text", "") for inner in every_node(other) if asks(inner)]
    asked = [part for part in node.text.split(" and ") if not _RUNNING.fullmatch(part)]
    tested = _THERE.fullmatch(asked[0]) if len(asked) == 1 else None
    return node.text in waits or (tested is not None and any(tested[1] in text for text in waits))
