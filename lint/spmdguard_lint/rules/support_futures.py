"""Asynchronous saves whose future nobody asks for at the end.

Terminology: the *last* save of a run is the one after which no other begins. A step *asks* for it where it waits for a
future, or calls something whose name says that it ends or waits for what is under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..traces.nodes import Call, Event, Fallible, Node, Op, Tree
from .support_trees import Step, steps

ASYNC_SAVE = "checkpoint.async_save"
_ENDS = re.compile(
    r"wait|result|exception|finali[sz]e|finish|close|join|shutdown|flush|done|drain|synchron|teardown|complete|stop|as_completed"
)


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
