"""Divergences at handlers: an exception on one rank skips collectives, or makes its handler call some."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from ..values.evaluate import rank_dependent
from .catching import OUT_OF_MEMORY, catches
from .columns import lines
from .doubts import obeys
from .ending import ends_as_failure
from .judged import Candidate, Divergence, by_exception, variance
from .nodes import (
    Branch,
    Call,
    Event,
    Fallible,
    Handler,
    Jump,
    Loop,
    Node,
    Op,
    Region,
    Tree,
    Try,
    every_node,
)
from .pointing import anchor, arms_around, call_name, first_in, first_jump, first_op, loop_around, next_round
from .repeating import tried_again
from .terms import ABORT, Reader, Terms

_BROAD = frozenset(
    {"Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "DistBackendError", "DistError"}
)
_WRITES = frozenset({"write", "rename", "upload"})
_ON_DATA = frozenset({"ValueError", "TypeError", "KeyError", "IndexError", "OverflowError"})
_ASKED = frozenset({"network", "download", "upload"})
_REQUESTS = frozenset(
    {
        "Exception",
        "BaseException",
        "OSError",
        "ConnectionError",
        "TimeoutError",
        "RequestException",
        "Timeout",
        "ReadTimeout",
        "ConnectTimeout",
        "HTTPError",
        "HTTPStatusError",
        "RequestError",
        "TimeoutException",
        "URLError",
        "HfHubHTTPError",
        "ClientError",
    }
)
_OF_QUEUES = frozenset({"Empty", "Full"})
"""What a queue of this process raises that was not filled, or emptied, in time: to wait again is no way out."""
_IO = frozenset(
    {"OSError", "IOError", "FileNotFoundError", "PermissionError", "ConnectionError", "TimeoutError"}
)


def try_divergences(candidate: Candidate, node: Try, terms: Terms, quiet: Reader) -> Iterator[Divergence]:
    if node.form != "try" and not node.handlers:
        return
    body_k = candidate.body_k or candidate.k
    k = candidate.k.but(raises=lambda _name: ABORT, raise_key="abort")
    operation = _hard_op(node.body, quiet)
    for handler in node.handlers:
        hard = operation
        broad = not handler.names or any(n in _BROAD for n in handler.names)
        io = any(n in _IO for n in handler.names) and _has_io(node.body)
        on_data = any(n in _ON_DATA for n in handler.names) and _reads_own(node.body)
        if operation is None:
            meant = not (broad or io or on_data) or _meant_for_own_raise(handler, node.body)
            again = () if meant else tuple(tried_again(candidate, node, handler, terms, quiet))
            yield from again or _left(candidate, node, handler, terms, quiet)
        of_model = None if broad or io or on_data else _model_raises(handler, node.body)
        interrupt = "KeyboardInterrupt" in handler.names
        if not (broad or io or on_data or of_model or interrupt):
            continue
        after_error = quiet.read(handler.body, k)
        if (
            interrupt
            and not broad
            and not (_in_rounds(node.body, quiet) and _meets_again(terms, after_error))
        ):
            continue
        if of_model is not None:
            if after_error in (ABORT, quiet.read([], body_k)):
                continue  # it goes on as the others do, but for the forward pass itself
            hard = hard or of_model
        own_op, own_calls = first_op(handler.body, quiet)
        if hard is not None and after_error != ABORT and not _meant_for_own_raise(handler, node.body):
            normal = quiet.read(node.body, body_k)
            if ends_as_failure(node, handler, candidate.chain):
                continue
            if normal != after_error or (handles_memory(handler) and _ends_midway(node.body, quiet)):
                jump = first_jump(handler.body)
                jump = jump if jump is not None and jump.kind != "raise" else _last_jump(handler.body)
                at = jump if jump is not None else handler
                yield by_exception(
                    "swallow",
                    candidate,
                    handler,
                    (at.place, at.text),
                    (lines(terms, after_error), lines(terms, normal)),
                    jump=jump,
                    operation=hard,
                    extra={"catches": ", ".join(handler.names) or "everything"},
                )
                continue
        if own_op is not None and after_error != quiet.read(node.body, body_k):
            shown = anchor(own_op, own_calls)
            yield by_exception(
                "handler",
                candidate,
                handler,
                (shown.place, getattr(shown, "text", "")),
                (lines(terms, after_error), lines(terms, quiet.read(node.body, body_k))),
                through_call=call_name(own_calls),
                operation=own_op,
            )


def _left(
    candidate: Candidate, node: Try, handler: Handler, terms: Terms, quiet: Reader
) -> Iterator[Divergence]:
    """A handler that leaves past the collectives after the statement, where one rank alone may come to it."""
    jump = first_jump(handler.body)
    if jump is None or jump.kind not in ("return", "break", "continue") or not may_fail(node.body):
        return
    alone = _chosen_by_rank(candidate)
    waited = jump.kind != "continue" and any(name in _OF_QUEUES for name in handler.names)
    if not alone and not waited and not _has_io(node.body) and not _reads_own(node.body):
        return
    k = candidate.k.but(raises=lambda _name: ABORT, raise_key="abort")
    normal, after_error = quiet.read(node.body, candidate.body_k or candidate.k), quiet.read(handler.body, k)
    skipped = first_in(terms, normal) or next_round(candidate.chain, quiet)
    if normal == after_error or skipped is None or _meant_for_own_raise(handler, node.body):
        return
    if alone and _leads_on(candidate, jump, skipped, first_in(terms, after_error), quiet):
        return
    on_data = all(name in _ON_DATA for name in handler.names) if handler.names else False
    likely = alone or _reads_own(node.body) or (_writes_own(node.body) and not on_data)
    likely = likely or waited or _asks_service(handler, node.body)
    certainty = "likely" if likely else "possible"
    columns = lines(terms, after_error), lines(terms, normal)
    shown = jump.place, jump.text
    yield by_exception("exit", candidate, handler, shown, columns, certainty, jump=jump, operation=skipped)


def _chosen_by_rank(candidate: Candidate) -> bool:
    """Whether a statement stands in an arm that the rank decides, in this function or around a call of it."""
    return any(rank_dependent(node.condition) for node, _, _ in arms_around(candidate.chain))


def _leads_on(candidate: Candidate, jump: Jump, skipped: Op, next_op: Op | None, quiet: Reader) -> bool:
    """Whether a leader leaves out a whole round, of which its followers have not heard, and tells them of another."""
    begun = next_round(candidate.chain, quiet)
    if skipped is not begun:
        return False
    if next_op is None and jump.kind != "return":
        next_op = begun if jump.kind == "continue" else _behind_loop(candidate, quiet)
    led = next((arm for _, arm, other in arms_around(candidate.chain) if obeys(other, arm)), None)
    return led is not None and next_op is not None and next_op in every_node(led)


def _behind_loop(candidate: Candidate, quiet: Reader) -> Op | None:
    """The first operation behind the loop around a statement."""
    around = loop_around(candidate.chain)
    if around is None:
        return None
    loop, block = around
    return first_op(block[block.index(loop) + 1 :], quiet)[0]


def may_fail(nodes: Tree) -> bool:
    """Whether a tree holds calls, out of which an exception may come."""
    return any(isinstance(node, (Fallible, Event, Call)) for node in every_node(nodes))


def _in_rounds(nodes: Tree, reader: Reader) -> bool:
    """Whether a loop calls operations: an interrupt then comes to ranks in another round each."""
    loops = (node for node in every_node(nodes) if isinstance(node, Loop))
    return any(_hard_op(loop.body, reader) is not None for loop in loops)


def _meets_again(terms: Terms, after_error: int) -> bool:
    """Whether a rank that was interrupted goes on to an operation in which it waits for the others."""
    following = first_in(terms, after_error)
    return following is not None and following.name != "destroy_process_group"


def handles_memory(handler: Handler) -> bool:
    """Whether a clause catches out-of-memory errors by class, or asks the message for "out of memory"."""
    if any(name in OUT_OF_MEMORY for name in handler.names):
        return True
    stack = [handler.body]
    while stack:
        for node in stack.pop():
            if isinstance(node, Branch) and "out of memory" in node.text.lower():
                return True
            stack.extend(node.subtrees())
    return False


def _ends_midway(nodes: Tree, reader: Reader) -> bool:
    """Whether memory may run out after some collectives of a body: to repeat the body then is to repeat those."""
    found: list[Op] = []
    stack = [(nodes, False)]
    while stack:
        tree, again = stack.pop()
        for node in tree:
            if isinstance(node, Op) and reader.counts(node) and node.kind == "collective":
                if again or node.name == "backward":
                    return True
                found.append(node)
            if not _without_exchange(node):
                stack.extend((child, again or isinstance(node, Loop)) for child in node.subtrees())
    return len(found) > 1


def _without_exchange(node: Node) -> bool:
    return isinstance(node, Region) and node.kind == "no-sync"


def _last_jump(nodes: Tree) -> Jump | None:
    for node in reversed(nodes):
        if isinstance(node, Jump) and node.kind in ("return", "break", "continue"):
            return node
    return None


def _hard_op(nodes: Tree, reader: Reader, *, alone: bool = False) -> Op | None:
    """An operation that an exception of the body can skip; a mere DDP forward is none.

    Neither is a backward pass without exchange; ``alone`` says that it is one.
    """
    for node in nodes:
        if isinstance(node, Op) and reader.counts(node):
            skipped = alone if node.name == "backward" else node.implicit and "forward" in node.name
            if not skipped:
                return node
        within = alone or _without_exchange(node)
        for child in node.subtrees():
            found = _hard_op(child, reader, alone=within)
            if found is not None:
                return found
    return None


def _meant_for_own_raise(handler: Handler, body: Tree) -> bool:
    """A narrow handler whose exception the body raises itself is there for that, not for failures."""
    if not handler.names or any(n in ("Exception", "BaseException") for n in handler.names):
        return False
    for node in body:
        if isinstance(node, Jump) and node.kind == "raise" and catches(handler, node.exception):
            return True
        if isinstance(node, Branch) and variance(node.condition.taint):
            continue
        if any(_meant_for_own_raise(handler, child) for child in node.subtrees()):
            return True
    return False


def _model_raises(handler: Handler, body: Tree) -> Op | None:
    """The forward pass out of which a class of the project's own is caught: the model raises it on some batches."""
    if not handler.names or any(hasattr(builtins, name) for name in handler.names):
        return None
    if _meant_for_own_raise(handler, body):
        return None
    return _forward(body)


def _forward(nodes: Tree) -> Op | None:
    for node in nodes:
        if isinstance(node, Op) and node.implicit and "forward" in node.name:
            return node
        for child in node.subtrees():
            found = _forward(child)
            if found is not None:
                return found
    return None


def _asks_service(handler: Handler, nodes: Tree) -> bool:
    """Whether a clause is for requests of this rank to another machine: each has its own answer, or none."""
    named = not handler.names or any(name in _REQUESTS for name in handler.names)
    return named and any(isinstance(node, Event) and node.name in _ASKED for node in every_node(nodes))


def _reads_own(nodes: Tree) -> bool:
    """Whether something is made of this rank's own data that may not be possible."""
    return any(isinstance(node, Fallible) and node.own for node in every_node(nodes))


def _writes_own(nodes: Tree) -> bool:
    """Whether a file is written, or sent, that has this rank in its name: what fails there fails on one rank."""
    return any(
        isinstance(node, Event)
        and (node.name in _WRITES or (node.name == "open" and _for_writing(node)))
        and any(rank_dependent(value) for value in (*node.args, *node.keywords.values()))
        for node in every_node(nodes)
    )


def _for_writing(node: Event) -> bool:
    """Whether a file is opened to be written."""
    mode = node.keywords.get("mode", node.args[1] if len(node.args) > 1 else None)
    return mode is not None and mode.tag == "const" and str(mode.data[0])[:1] in ("w", "a", "x")


def _has_io(nodes: Tree) -> bool:
    return any(isinstance(node, Fallible) and node.io for node in every_node(nodes))
