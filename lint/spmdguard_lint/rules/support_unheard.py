"""Failures that were caught and of which the program's end says nothing.

Terminology: an error is *kept* by spmdguard's deferral, *told* where ranks share whether they have caught one, and
*answered* where a function that only logs it returns another constant than it does otherwise. It is *dropped* where
nothing raises it on some rank, or in the whole run, or where nobody looks at the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..interpreter.withs import asked_to_raise
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.files import RANKS, WORLD, writes
from ..traces.joined import comes_from
from ..traces.judged import variance
from ..traces.nodes import (
    Branch,
    Call,
    Event,
    Fallible,
    Handler,
    Jump,
    Node,
    Op,
    Region,
    Tree,
    Try,
    every_node,
)
from ..traces.sequence import Walk
from ..traces.where import Where, around
from ..values.value import is_at, parts_of, place_of
from .support_decorators import decorator_fact
from .support_events import deferral, reading
from .support_phases import SAVES
from .support_swallowed import around_clause, broad, says

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..values.value import Place

_WRITES = frozenset({"write", "rename", "mkdir", "checkpoint-save"})
_ENDS = frozenset({"raise", "exit", "assert"})
_ENDING = frozenset({"kill", "abort", "run", "raise-if-deferred"})
_SAVED = (*SAVES, "save_pretrained", "pickle.dump")


def swallowing_decorators(analysis: Analysis) -> Iterator[tuple[Place, str]]:
    """The decorators that swallow whatever a function which communicates raises."""
    for root in analysis.roots:
        if root.function is None or not root.contents.ops - {"destroy_process_group"}:
            continue
        for decorator in root.function.decorators:
            fact = decorator_fact(root.module, decorator)
            swallows = fact is not None and fact.suppresses and fact.wraps == "context" and not fact.event
            if swallows and not asked_to_raise(decorator):
                yield place_of(root.module.filename, decorator), unparse(decorator)


class _Keeping(Walk):
    """Where one rank keeps errors, and whether it comes to raise them."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank=rank, world=WORLD, local=2)
        self.kept: Region | None = None
        self.raised: Event | None = None
        self.leaves = False

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        if isinstance(node, (Event, Fallible)):
            self.kept = self.kept or deferral(where)
        if isinstance(node, Event) and node.name == "raise-if-deferred":
            self.raised = self.raised or node
        return state

    def jump(self, node: Jump, state: Hashable, where: Where | None) -> Hashable:
        tests = (w.node for w in around(where) if isinstance(w.node, Branch))
        kept = any(t.kind == "exception" for test in tests for t in test.condition.taint)
        self.leaves = self.leaves or (node.kind in _ENDS and kept)
        return state


def raised_on_some(analysis: Analysis) -> Iterator[tuple[Event, Region]]:
    """The raises of kept errors to which some ranks that keep errors do not come, with what they keep."""
    for root in reading(analysis):
        contents = root.contents
        if "raise-if-deferred" not in contents.events or "run" in contents.events or not contents.by_rank:
            continue
        walks = [_Keeping(rank) for rank in RANKS]
        for walk_of_rank in walks:
            walk_of_rank.run(root.tree, "")
        raising = next((one.raised for one in walks if one.raised is not None), None)
        silent = [one.kept for one in walks if one.raised is None and not one.leaves and one.left >= 0]
        kept = next((region for region in silent if region is not None), None)
        if raising is not None and kept is not None:
            yield raising, kept


class Told(NamedTuple):
    """The clause that has caught an error, what tells the ranks of it, and the jump by which they end the work."""

    handler: Handler
    op: Op
    jump: Jump


def told_and_dropped(analysis: Analysis) -> Iterator[Told]:
    """Work that all ranks end because one has failed to write, in a program that ends as a success all the same."""
    for root in reading(analysis):
        contents = root.contents
        if "destroy_process_group" not in contents.ops or contents.events & _ENDING or contents.defers:
            continue
        nodes = list(every_node(root.tree))
        telling = [node for node in nodes if isinstance(node, Op) and node.tells]
        handler = _writing_clause(nodes) if telling else None
        if handler is None or any(_ends_badly(node) for node in nodes[nodes.index(telling[0]) :]):
            continue
        places = {op.place for op in telling}
        for node in nodes:
            if isinstance(node, Branch) and not variance(node.condition.taint):
                jump = next((step for step in (*node.then, *node.orelse) if _leaves(step)), None)
                if isinstance(jump, Jump) and any(
                    comes_from(part, places) for part in parts_of(node.condition)
                ):
                    yield Told(handler, telling[0], jump)
                    break


def _leaves(step: Node) -> bool:
    return isinstance(step, Jump) and step.kind in ("return", "break")


def _ends_badly(node: Node) -> bool:
    """Whether a jump may end the program with a failure."""
    if not isinstance(node, Jump) or node.kind not in _ENDS:
        return False
    status = node.value
    return node.kind != "exit" or not (
        status is None or (status.tag == "const" and status.data[0] in (None, 0))
    )


def _writing_clause(nodes: list[Node]) -> Handler | None:
    """The clause that catches what fails while a rank writes files; None where another clause may be what is told."""
    tries = [node for node in nodes if isinstance(node, Try) and node.form == "try" and node.handlers]
    clauses = [(broad(node), _touches(node.body)) for node in tries]
    if not clauses or not all(handlers and written for handlers, written in clauses):
        return None
    return clauses[0][0][0]


def _touches(body: Tree) -> bool:
    """Whether files are written, and nothing else is done that all ranks take part in."""
    inside = list(every_node(body))
    if any(isinstance(node, Op) for node in inside):
        return False
    events = [node for node in inside if isinstance(node, Event)]
    return any(node.name in _WRITES or (node.name == "open" and writes(node)) for node in events)


class Dropped(NamedTuple):
    """A call whose answer nobody looks at, the clause that gives it, and the write that has failed then."""

    call: Call
    handler: Handler
    written: Event


def dropped_answers(analysis: Analysis) -> Iterator[Dropped]:
    """Calls of functions that write a checkpoint and answer whether they could, as statements of their own."""
    seen: set[Place] = set()
    for root in reading(analysis):
        if not root.contents.ops or not root.contents.events & {"write", "checkpoint-save"}:
            continue
        for call in every_node(root.tree):
            if not isinstance(call, Call) or call.mode != "call" or call.place in seen:
                continue
            answer = _answered(analysis, call)
            if answer is not None and _is_statement(analysis, call.place):
                seen.add(call.place)
                yield Dropped(call, *answer)


def _answered(analysis: Analysis, call: Call) -> tuple[Handler, Event] | None:
    """The clause of a function that answers with another constant than it does where all went well."""
    own = list(_own_nodes(call.body))
    for node in own:
        if not isinstance(node, Try) or node.form != "try":
            continue
        written = next((event for event in every_node(node.body) if _is_save(event)), None)
        for handler in broad(node)[:1] if isinstance(written, Event) else ():
            jump = handler.body[-1] if handler.body else None
            elsewhere = [
                one for one in own if isinstance(one, Jump) and one.kind == "return" and one is not jump
            ]
            differs = bool(elsewhere) and all(_answer(one) not in (None, _answer(jump)) for one in elsewhere)
            if _answer(jump) is not None and differs and _logs_and_answers(analysis, handler):
                assert isinstance(written, Event)
                return handler, written
    return None


def _own_nodes(tree: Tree) -> Iterator[Node]:
    """The nodes of a function without those of what it calls."""
    for node in tree:
        yield node
        if not isinstance(node, Call):
            for child in node.subtrees():
                yield from _own_nodes(child)


def _is_save(node: Node) -> bool:
    return isinstance(node, Event) and (
        node.name == "checkpoint-save" or (node.name == "write" and node.call.endswith(_SAVED))
    )


def _answer(jump: Node | None) -> str | None:
    """The constant that a return gives, but None; as text, since ``True == 1``."""
    if not isinstance(jump, Jump) or jump.kind != "return" or jump.value is None or jump.value.tag != "const":
        return None
    return None if jump.value.data[0] is None else repr(jump.value.data[0])


def _logs_and_answers(analysis: Analysis, handler: Handler) -> bool:
    """Whether a clause does nothing but log and return a constant."""
    clause = around_clause(analysis, handler.place)
    if clause is None or not isinstance(clause.body[-1], ast.Return):
        return False
    return all(map(says, clause.body[:-1]))


def _is_statement(analysis: Analysis, place: Place) -> bool:
    """Whether the call at a place is a statement of its own, whose result goes nowhere."""
    module = analysis.project.by_filename.get(place.filename)
    return module is not None and any(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and is_at(node.value, place)
        for node in walk(module.tree)
    )
