"""Where to point: the operation, jump or call in an arm that a reader should look at."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from ..values.evaluate import Valuation, truth
from ..values.value import Value, parts_of
from .catching import catches
from .nodes import (
    Branch,
    Call,
    Event,
    Fallible,
    Jump,
    Loop,
    Node,
    Op,
    Tree,
    Try,
    Yielded,
    every_node,
    shadowed,
)
from .terms import Continuation, Reader, Terms

_NOT_FINITE = re.compile(
    r"(?i:is_?finite|is_?nan|is_?inf\b|(?:not|non)[ _-]?finite|\bdiverged\b)|\b(?:NaN|nan)s?\b"
)
_EQUAL = frozenset({"==", "!=", "in", "not in"})
Chain = Sequence[tuple[Tree, Continuation]]  # the blocks around a statement, innermost first


def first_op(
    nodes: Tree, reader: Reader, *, destroy: bool = False, regions: tuple[str, ...] = ()
) -> tuple[Op | None, tuple[Node, ...]]:
    """The first operation in a tree and the calls (and resumed blocks) that lead to it.

    A clause counts where its body itself raises: then it is on a way that the program has written down.
    """
    for node in nodes:
        counts = isinstance(node, Op) and reader.counts(node) and not shadowed(node, regions)
        if isinstance(node, Op) and counts and (destroy or node.name != "destroy_process_group"):
            return node, ()
        clauses = node.handlers if isinstance(node, Try) and "raise" not in reader.ways_out(node.body) else ()
        for child in node.subtrees():
            if any(child is clause.body for clause in clauses):
                continue
            op, calls = first_op(child, reader, destroy=destroy, regions=regions)
            if op is not None:
                return op, ((node, *calls) if isinstance(node, (Call, Yielded)) else calls)
    return None, ()


def anchor(op: Op, path: tuple[Node, ...]) -> Node:
    """Where to point: the first direct call on the way to the operation, or the operation itself.

    A call through a variable (a decorator's wrapper, a callback) says nothing to the reader; a block that is
    resumed inside a generator stands in the reader's own function.
    """
    resumed = max((i for i, node in enumerate(path) if isinstance(node, Yielded)), default=-1)
    for node in path[resumed + 1 :]:
        if isinstance(node, Call) and not indirect(node):
            return node
    return op


def managers_op(node: Branch, reader: Reader) -> Op | None:
    """The first operation that only one of two managers brings around the block of a with statement."""
    if node.form != "with":
        return None
    arms = (node.then, node.orelse)
    for arm, other in (arms, reversed(arms)):
        there = {inner.place for inner in every_node(other) if isinstance(inner, Op)}
        own = (inner for inner in every_node(arm) if isinstance(inner, Op) and reader.counts(inner))
        found = next((op for op in own if op.place not in there), None)
        if found is not None:
            return found
    return None


def handed_in(calls: Sequence[Call], chain: Chain, node: Node, quiet: Reader) -> Node | None:
    """What to point at where the rest of a decorator's wrapper has operations only in the function that it wraps.

    Such a wrapper leaves on purpose (it is there for one rank): the function does not suit it. None elsewhere.
    """
    if not calls or "<locals>" not in calls[-1].name:
        return None
    around = chain[0][0] if chain else []
    found: Node | None = None
    for later in around[around.index(node) + 1 :] if node in around else ():
        op, path = first_op([later], quiet)
        if op is None:
            continue
        if not path or not isinstance(path[0], Call) or not indirect(path[0]):
            return None
        found = found or anchor(op, path)
    return found


def _function_of(text: str) -> str:
    """What a call calls: ``make(x).meet`` of ``make(x).meet(y)``; up to the first parenthesis in a text cut short."""
    depth = 0
    for index in range(len(text) - 1, -1, -1) if text.endswith(")") else ():
        depth += (text[index] == ")") - (text[index] == "(")
        if depth == 0:
            return text[:index]
    return text.partition("(")[0]


def indirect(call: Call) -> bool:
    """Whether a call names something else than the function that it reaches."""
    called = _function_of(call.text).rpartition(".")[2].strip()
    reached = call.name.rpartition(".")[2]
    special = reached.startswith("__") and reached.endswith("__")
    if special or reached in ("forward", "<lambda>") or call.mode != "call":
        return False
    owner = call.name.split(".")[-2] if "." in call.name else ""
    return called.isidentifier() and called != reached and called != owner


def first_jump(nodes: Tree) -> Jump | None:
    """The first jump that leaves a tree; returns inside followed calls do not."""
    return jump_path(nodes)[0]


def jump_path(nodes: Tree) -> tuple[Jump | None, tuple[Node, ...]]:
    """The first jump that leaves a tree, and the branches and calls that lead to it."""
    return next(leaving(nodes), (None, ()))


def leaving(nodes: Tree) -> Iterator[tuple[Jump, tuple[Node, ...]]]:
    """Each jump that leaves a tree, with the branches and calls that lead to it."""
    for node in nodes:
        if isinstance(node, Jump):
            if node.kind not in ("end", "assert"):
                yield node, ()
            continue
        for child in node.subtrees():
            for found, path in leaving(child):
                if isinstance(node, Call) and found.kind == "return":
                    continue
                if isinstance(node, Loop) and child is node.body and found.kind in ("break", "continue"):
                    continue
                if isinstance(node, Try) and child is node.body and is_caught(node, found):
                    continue
                yield found, (node, *path)


def is_caught(node: Try, jump: Jump) -> bool:
    """Whether a try statement catches what a jump in its body raises."""
    return jump.kind in ("raise", "exit") and any(catches(h, raised_by(jump)) for h in node.handlers)


def raised_by(jump: Jump) -> str:
    """The class name of what a raise or an exit raises, with those of its ancestors where they are known."""
    return jump.exception or ("SystemExit" if jump.kind == "exit" else "")


def first_in(terms: Terms, term: int) -> Op | None:
    """The first operation on the way of a term."""
    for _ in range(200):
        item = terms.items[term]
        if item[0] == "op":
            return terms.texts.get(term)
        if item[0] == "alt":
            term = item[2] if terms.operates[item[2]] else item[3]
        elif item[0] == "loop":
            term = item[2]
        else:
            return None
    return None


def first_apart(terms: Terms, leaving: int, staying: int) -> Op | None:
    """The first operation of those that stay, behind what both call alike."""
    while terms.items[leaving][0] == "op" and terms.items[leaving][:2] == terms.items[staying][:2]:
        leaving, staying = terms.items[leaving][2], terms.items[staying][2]
    return first_in(terms, staying)


def first_of_arms_apart(
    node: Branch, then: int, orelse: int, terms: Terms
) -> tuple[Op, tuple[Node, ...]] | None:
    """The first operation that one arm has and the other has not in its place, with the calls that lead to it."""
    for arm, own, other in ((node.then, then, orelse), (node.orelse, orelse, then)):
        op = first_apart(terms, other, own)
        way = None if op is None else way_to(op, arm)
        if op is not None and way is not None:
            return op, tuple(node for node in way if isinstance(node, (Call, Yielded)))
    return None


def way_to(wanted: Node, nodes: Tree) -> tuple[Node, ...] | None:
    """The nodes around another one in a tree, from the outermost on; None where it stands elsewhere."""
    for node in nodes:
        if node is wanted:
            return ()
        for child in node.subtrees():
            way = way_to(wanted, child)
            if way is not None:
                return (node, *way)
    return None


def stands_at(
    nodes: Tree, k: Continuation, wanted: Node, inner: tuple[Tree, Continuation] | None
) -> int | None:
    """Which statement of a block is a node, or holds the block around it that is the next one inward.

    Calls with the same arguments share one body: in which of them the inner block is read says its continuation.
    """
    call = None
    if inner is not None and len(inner[1].calls) > len(k.calls):
        call = inner[1].calls[len(k.calls)]
    for index, one in enumerate(nodes):
        if one is wanted or (call is not None and one is call):
            return index
        for deeper in every_node([one]):
            if deeper is call if call is not None else _has_block(deeper, inner):
                return index
    return None


def _has_block(node: Node, inner: tuple[Tree, Continuation] | None) -> bool:
    return inner is not None and any(child is inner[0] for child in node.subtrees())


def call_name(path: tuple[Node, ...]) -> str:
    """The name of the first followed call on a path."""
    return next((node.name for node in path if isinstance(node, Call)), "")


def per_host(condition: Value) -> bool:
    """Whether a condition reads what may differ from host to host: the environment, the file system, data."""
    if condition.taint and not _asks_for_earlier(condition):
        return True
    stack = [condition]
    while stack:
        value = stack.pop()
        if value.tag == "sym" and isinstance(value.data[0], tuple) and value.data[0][:1] == ("environ",):
            return True
        if value.tag == "expr":
            stack.extend(value.data[1])
        elif value.tag == "ite":
            stack.extend(value.data)
    return False


def _asks_for_earlier(condition: Value) -> bool:
    """Whether a condition asks if a container is filled, which the rank decided: was something called before?"""
    varying = [part for part in parts_of(condition) if part.taint and part.tag != "expr"]
    return all(
        part.tag == "sym"
        and isinstance(part.data[0], tuple)
        and part.data[0][0] in ("filled", "length")
        and all(taint.kind in ("rank", "group-rank") for taint in part.taint)
        for part in varying
    )


def telling_jump(nodes: Tree, k: Continuation) -> tuple[Jump | None, tuple[Node, ...], bool]:
    """The jump by which an arm is left, the way to it, and whether it is a mere precondition.

    A precondition raises for what is wrong on every rank alike, and ends the program: it stands below a further
    test that neither the rank nor the world size decides, and that reads nothing which may differ from host to
    host. So does a rank that has polled for too long. Any other jump says more, and so does one for a number that is
    not finite: no run begins with it. Nor is it a precondition that an option is one of the known words: the rank that
    alone looks at it ends, and the others, who never asked, go on.
    """
    first: tuple[Jump | None, tuple[Node, ...], bool] = (None, (), False)
    for jump, path in leaving(nodes):
        tests = [step.condition for step in path if isinstance(step, Branch)]
        if jump.kind not in ("raise", "exit") or k.caught(raised_by(jump)):
            return jump, path, False
        if (
            _of_numbers(jump, path)
            or _of_words(path)
            or not (_opaque(tests) or _waits_in_vain(nodes, jump, path))
        ):
            return jump, path, False
        if first[0] is None:
            first = (jump, path, True)
    return first


def _waits_in_vain(nodes: Tree, jump: Jump, path: tuple[Node, ...]) -> bool:
    """Whether a jump ends a loop that polls for something: where a clock says that it does not come, or behind it."""
    for loop, test in itertools.pairwise(path):
        if isinstance(loop, Loop) and isinstance(test, Branch) and polls(loop):
            return any(taint.kind == "time" for taint in test.condition.taint)
    around = path[-1].subtrees() if path else (nodes,)
    tree = next(tree for tree in around if jump in tree)
    earlier = (node for node in reversed(tree[: tree.index(jump)]) if not isinstance(node, (Event, Fallible)))
    before = next(earlier, path[-1] if path else None)
    return isinstance(before, Loop) and polls(before) and tree is not before.body


def polls(loop: Loop) -> bool:
    """Whether a loop sleeps from round to round, and communicates with nobody."""
    inside = list(every_node(loop.body))
    sleeps = any(isinstance(node, Event) and node.name == "sleep" for node in inside)
    return sleeps and not any(isinstance(node, Op) for node in inside)


def _of_numbers(jump: Jump, path: tuple[Node, ...]) -> bool:
    """Whether a jump raises for a number that is not finite, as the innermost test or its own message says."""
    test = next((step.text for step in reversed(path) if isinstance(step, Branch)), "")
    return jump.kind == "raise" and asks_for_finite(f"{test} {jump.text}")


def _of_words(path: tuple[Node, ...]) -> bool:
    """Whether a jump stands below a test that compares something with words, in no call further in."""
    test = path[-1] if path and all(isinstance(step, Branch) for step in path) else None
    if not isinstance(test, Branch) or test.form != "if":
        return False
    return any(_is_word(operand) for part in _compared(test.condition) for operand in part.data[1])


def _compared(condition: Value) -> Iterator[Value]:
    """The comparisons for equality of which a condition is made."""
    if condition.tag == "expr" and condition.data[0] in _EQUAL:
        yield condition
    elif condition.tag == "expr" and condition.data[0] in ("not", "and", "or"):
        for part in condition.data[1]:
            yield from _compared(part)


def _is_word(value: Value) -> bool:
    """Whether a value is a text, or a row of texts."""
    items = value.data if value.tag == "tuple" else (value,)
    return bool(items) and all(item.tag == "const" and isinstance(item.data[0], str) for item in items)


def asks_for_finite(text: str) -> bool:
    """Whether a test or a message speaks of numbers that are not finite."""
    return _NOT_FINITE.search(text) is not None


def _opaque(tests: list[Value]) -> bool:
    if any(per_host(test) for test in tests):
        return False
    return any(truth(test, Valuation(0, 2)) is None for test in tests)


def next_round(chain: Chain, quiet: Reader) -> Op | None:
    """The first operation of the loop that a rank leaves or goes on with."""
    around = loop_around(chain)
    return None if around is None else first_op(around[0].body, quiet)[0]


def loop_around(chain: Chain) -> tuple[Loop, Tree] | None:
    """The innermost loop whose body the blocks around a statement go through, with the block that it stands in."""
    for (body, _), (around, _) in itertools.pairwise(chain):
        for node in around:
            if isinstance(node, Loop) and node.body is body:
                return node, around
    return None


def arms_around(chain: Chain) -> Iterator[tuple[Branch, Tree, Tree]]:
    """The branches that a statement stands in, innermost first, each with its own arm and the other one."""
    for (inner, _), (outer, _) in itertools.pairwise(chain):
        for node in outer:
            if isinstance(node, Branch) and (inner is node.then or inner is node.orelse):
                yield node, inner, node.orelse if inner is node.then else node.then
