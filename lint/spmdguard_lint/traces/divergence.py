"""Divergences: branches, loops and handlers after which ranks no longer call the same collectives.

Method (PARCOACH's criterion on trace trees): a branch whose condition is rank-varying diverges when the
terms of its arms, up to the function's exit, differ. A divergence is then dismissed when some enclosing
block, read for each rank of worlds of 2 to 4 (and for each truth value of an opaque condition), gives every
rank the same term: split barriers, complementary guards, sentinels and always-true rank tests are such.
Cost: one reading of the tree per root; one more per valuation only where a divergence was found.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import product

from ..values.evaluate import Valuation, rank_constants, rank_dependent
from ..values.value import Place, Taint, Taints, Value, taint_order
from .nodes import Branch, Call, Handler, Jump, Loop, Node, Op, Tree, Try, Yielded
from .terms import (
    ABORT,
    Continuation,
    Reader,
    Terms,
    TooLarge,
    Watcher,
    catches,
    root_continuation,
    subtrees,
)

MAX_CONTEXTS = 4
WORLDS = ((2, 2), (3, 3), (4, 2))


@dataclass
class Divergence:
    """One place where ranks may part.

    ``shape``: "arm" (operations in one arm only), "order" (in both, unequal), "exit" (an early exit skips
    operations), "trip" (a loop runs a different number of times), "swallow" (a handler goes on after a body
    with collectives), "handler" (a collective in an exception path).
    """

    shape: str
    node: Node
    place: Place
    text: str
    condition: Value | None
    condition_place: Place
    condition_text: str
    form: str
    taints: tuple[Taint, ...]
    calls: tuple[Call, ...]
    diverging: tuple[str, ...]
    others: tuple[str, ...]
    through_call: str = ""
    jump: Jump | None = None
    operation: Op | None = None
    subgroup: bool = False
    implicit: bool = False
    regions: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The strongest reason for rank variance."""
        return self.taints[0].kind if self.taints else "data"

    @property
    def certainty(self) -> str:
        """How sure the strongest reason is; operations known by name only make it weaker."""
        order = ["definite", "likely", "possible"]
        best = min((order.index(t.certainty) for t in self.taints), default=1)
        if self.operation is not None:
            best = max(best, order.index(self.operation.certainty))
        if self.kind not in ("rank", "group-rank"):
            best = max(best, 1)
        if self.form == "assert":
            best = 2
        return order[best]


def variance(taint: Taints) -> tuple[Taint, ...]:
    """The reasons that count, strongest first."""
    return tuple(sorted((t for t in taint if t.kind != "synced"), key=taint_order))


class _Finder(Watcher):
    """Collects the candidates of one root."""

    def __init__(self) -> None:
        self.candidates: dict[tuple[int, tuple[int, ...]], _Candidate] = {}
        self.contexts: dict[Place, int] = {}

    def branch(self, node: Branch, then: int, orelse: int, k: Continuation, reader: Reader) -> None:
        taints = variance(node.condition.taint)
        if not taints or "join" in k.regions:
            return
        self._add("branch", node, then, orelse, k, reader, taints)

    def loop(self, node: Loop, k: Continuation, reader: Reader) -> None:
        taints = variance(node.trip)
        if not taints or "join" in k.regions:
            return
        self._add("loop", node, 0, 0, k, reader, taints)

    def try_(self, node: Try, k: Continuation, body_k: Continuation, reader: Reader) -> None:
        self._add("try", node, 0, 0, k, reader, (), body_k)

    def _add(
        self,
        kind: str,
        node: Node,
        then: int,
        orelse: int,
        k: Continuation,
        reader: Reader,
        taints: tuple[Taint, ...],
        body_k: Continuation | None = None,
    ) -> None:
        key = (id(node), tuple(id(c) for c in k.calls))
        if key not in self.candidates and self.contexts.get(node.place, 0) < MAX_CONTEXTS:
            self.contexts[node.place] = self.contexts.get(node.place, 0) + 1
            chain = tuple(reversed(reader.enclosing))
            self.candidates[key] = _Candidate(kind, node, then, orelse, k, chain, taints, body_k)


@dataclass
class _Candidate:
    kind: str
    node: Node
    then: int
    orelse: int
    k: Continuation
    chain: tuple[tuple[Tree, Continuation], ...]
    taints: tuple[Taint, ...]
    body_k: Continuation | None


class Verdicts:
    """What earlier roots have shown of places in functions that several roots reach.

    A branch that its own function matches is safe in every context, and one that is bad in a context is
    reported whatever other contexts say: neither is judged again.
    """

    def __init__(self) -> None:
        self.safe: set[tuple[Place, Hashable, bool]] = set()
        self.bad: dict[tuple[Place, bool], int] = {}


def find_divergences(tree: Tree, verdicts: Verdicts | None = None) -> list[Divergence]:
    """All divergences of a root's trace tree, default group first, then sub-groups."""
    found: list[Divergence] = []
    verdicts = verdicts or Verdicts()
    world_only = _find(tree, verdicts, subgroups=False, known=set())
    found.extend(world_only)
    if _has_subgroups(tree):
        known = {(d.condition_place, d.shape) for d in world_only}
        for divergence in _find(tree, verdicts, subgroups=True, known=known):
            divergence.subgroup = True
            found.append(divergence)
    return found


def group_key(op: Op) -> Hashable:
    """The group of an operation in traces; None for the default group."""
    group = op.group
    if group is None or (group.tag == "const" and group.data[0] is None):
        return None
    if group.tag == "sym" and isinstance(group.data[0], tuple) and group.data[0][:1] == ("param-none",):
        return None
    if group.tag == "ext" and group.data[0].endswith("WORLD"):
        return None
    if group.tag == "extobj" and "WORLD" in str(group.data[1]):
        return None
    return group.key


def _has_subgroups(tree: Tree) -> bool:
    stack = [tree]
    while stack:
        for node in stack.pop():
            if isinstance(node, Op) and group_key(node) is not None:
                return True
            stack.extend(subtrees(node))
    return False


def _find(tree: Tree, verdicts: Verdicts, *, subgroups: bool, known: set[tuple[Place, str]]) -> list[Divergence]:
    terms = Terms()
    finder = _Finder()
    reader = Reader(terms, finder, subgroups=subgroups, group_key=group_key)
    try:
        reader.read(tree, root_continuation())
    except TooLarge:
        pass
    quiet = Reader(terms, None, subgroups=subgroups, group_key=group_key, budget=60_000)
    result: list[Divergence] = []
    for candidate in finder.candidates.values():
        place = candidate.node.place
        inside = bool(candidate.k.calls)
        if inside and verdicts.bad.get((place, subgroups), 0) >= MAX_CONTEXTS:
            continue
        try:
            for divergence in _judge(candidate, terms, quiet, verdicts):
                if (divergence.condition_place, divergence.shape) not in known:
                    result.append(divergence)
                    if inside:
                        verdicts.bad[(place, subgroups)] = verdicts.bad.get((place, subgroups), 0) + 1
        except TooLarge:
            continue
    return result


def _judge(
    candidate: _Candidate, terms: Terms, quiet: Reader, verdicts: Verdicts
) -> Iterator[Divergence]:
    node = candidate.node
    if isinstance(node, Branch):
        key = (node.place, node.condition.key, quiet.subgroups)
        if key in verdicts.safe:
            return
        if matched(candidate, node.condition, terms, quiet, verdicts, key):
            return
        yield _branch_divergence(candidate, node, terms, quiet)
    elif isinstance(node, Loop):
        condition = node.count
        if condition is None or not rank_dependent(condition) or not matched(candidate, condition, terms, quiet):
            yield _loop_divergence(candidate, node, terms, quiet)
    elif isinstance(node, Try):
        yield from _try_divergences(candidate, node, terms, quiet)


def matched(
    candidate: _Candidate,
    condition: Value,
    terms: Terms,
    quiet: Reader,
    verdicts: Verdicts | None = None,
    key: tuple[Place, Hashable, bool] | None = None,
) -> bool:
    """Whether some enclosing block gives every rank the same term after all."""
    atoms = _atoms(condition)
    by_rank = rank_dependent(condition)
    if not by_rank and not atoms:
        return False
    worlds = worlds_for(condition)
    for nodes, k in candidate.chain:
        if len(nodes) <= 1 and nodes and nodes[0] is candidate.node and not by_rank:
            continue
        if _same_for_all(nodes, k, atoms, by_rank, quiet, worlds):
            if verdicts is not None and key is not None and k.calls == candidate.k.calls:
                verdicts.safe.add(key)
            return True
    return False


def _same_for_all(
    nodes: Tree,
    k: Continuation,
    atoms: list[Hashable],
    by_rank: bool,
    quiet: Reader,
    worlds: list[tuple[int, int, tuple[int, ...]]],
) -> bool:
    for world, local, ranks in worlds if by_rank else worlds[:1]:
        seen: set[int] = set()
        for rank in ranks if by_rank else (0,):
            for truths in product((True, False), repeat=len(atoms)):
                reader = _reader_at(quiet, rank, world, local, tuple(zip(atoms, truths, strict=True)))
                if quiet.left <= 0:
                    return False
                before = reader.left
                seen.add(reader.read(nodes, k))
                quiet.left -= before - reader.left
                if len(seen) > 1:
                    return False
    return True


def worlds_for(condition: Value) -> list[tuple[int, int, tuple[int, ...]]]:
    """Worlds to read in: the small ones, and one large enough for every rank that the condition names."""
    worlds = [(world, local, tuple(range(world))) for world, local in WORLDS]
    named = sorted(rank_constants(condition))
    if named and named[-1] > WORLDS[-1][0] - 2:
        world = 2 * ((named[-1] + 3) // 2)
        near = {0, 1, world - 1, *(n + d for n in named[:4] for d in (-1, 0, 1))}
        worlds.append((world, 2, tuple(sorted(rank for rank in near if 0 <= rank < world))))
    return worlds


def _reader_at(
    quiet: Reader, rank: int, world: int, local: int, truths: tuple[tuple[Hashable, bool], ...]
) -> Reader:
    """The reader of one valuation; kept, so that what it has read serves the next question."""
    key = (rank, world, local, truths)
    reader = quiet.by_valuation.get(key)
    if reader is None:
        valuation = Valuation(rank, world, local, dict(truths))
        reader = Reader(quiet.terms, None, valuation, subgroups=quiet.subgroups, group_key=quiet.group_key)
        reader.operating = quiet.operating
        reader.leaving = quiet.leaving
        quiet.by_valuation[key] = reader
    return reader


def _atoms(condition: Value, limit: int = 3) -> list[Hashable]:
    """Opaque rank-varying parts of a condition that are not decided by the rank."""
    found: list[Hashable] = []
    stack = [condition]
    while stack:
        value = stack.pop()
        if not value.taint:
            continue
        if value.tag == "expr" and value.data[0] in ("not", "and", "or"):
            stack.extend(value.data[1])
        elif not rank_dependent(value) and value.key not in found:
            found.append(value.key)
    return found[:limit]


def first_op(nodes: Tree, reader: Reader, *, destroy: bool = False) -> tuple[Op | None, tuple[Node, ...]]:
    """The first operation in a tree and the calls (and resumed blocks) that lead to it."""
    for node in nodes:
        if isinstance(node, Op) and reader.counts(node) and (destroy or node.name != "destroy_process_group"):
            return node, ()
        for child in subtrees(node):
            if isinstance(node, Try) and any(child is h.body for h in node.handlers):
                continue
            op, calls = first_op(child, reader, destroy=destroy)
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


def indirect(call: Call) -> bool:
    """Whether a call names something else than the function that it reaches."""
    called = call.text.partition("(")[0].rpartition(".")[2].strip()
    reached = call.name.rpartition(".")[2]
    if reached in ("__init__", "__call__", "forward", "__enter__", "__exit__", "<lambda>") or call.mode != "call":
        return False
    owner = call.name.split(".")[-2] if "." in call.name else ""
    return called.isidentifier() and called != reached and called != owner


def first_jump(nodes: Tree) -> Jump | None:
    """The first jump that leaves a tree; returns inside followed calls do not."""
    return jump_path(nodes)[0]


def jump_path(nodes: Tree) -> tuple[Jump | None, tuple[Node, ...]]:
    """The first jump that leaves a tree, and the branches and calls that lead to it."""
    for node in nodes:
        if isinstance(node, Jump) and node.kind not in ("end", "assert"):
            return node, ()
        for child in subtrees(node):
            found, path = jump_path(child)
            if found is None:
                continue
            if isinstance(node, Call) and found.kind == "return":
                continue
            if isinstance(node, Loop) and found.kind in ("break", "continue"):
                continue
            return found, (node, *path)
    return None, ()


def _branch_divergence(candidate: _Candidate, node: Branch, terms: Terms, quiet: Reader) -> Divergence:
    from .columns import lines

    then_op, then_calls = first_op(node.then, quiet)
    else_op, else_calls = first_op(node.orelse, quiet)
    then_jump, else_jump = first_jump(node.then), first_jump(node.orelse)
    diverging, others = lines(terms, candidate.then), lines(terms, candidate.orelse)
    if then_op is None and else_op is None and then_jump is None and else_jump is None:
        then_op, then_calls = first_op(node.then, quiet, destroy=True)
        else_op, else_calls = first_op(node.orelse, quiet, destroy=True)
    op, calls, jump = then_op, then_calls, then_jump
    taints = candidate.taints
    if then_op is not None and else_op is not None:
        shape = "order"
    elif then_op is not None or else_op is not None:
        shape = "arm"
        if then_op is None:
            op, calls, jump = else_op, else_calls, else_jump
            diverging, others = others, diverging
            if then_jump is not None and then_jump.kind in ("raise", "exit", "break", "continue", "return"):
                jump = then_jump
    else:
        shape = "exit"
        if then_jump is None:
            jump = else_jump
            diverging, others = others, diverging
    skipped = None
    if shape == "exit":
        _, path = jump_path(node.then if jump is then_jump else node.orelse)
        call = next((step for step in path if isinstance(step, Call)), None)
        target = call if call is not None else jump if jump is not None else node
        place, text = target.place, getattr(target, "text", node.text)
        nested = [step for step in path if isinstance(step, Branch)]
        remote = jump is not None and jump.kind in ("raise", "exit") and bool(nested)
        if remote and not any(per_host(step.condition) for step in nested):
            taints = tuple(t._replace(certainty="possible") for t in taints)
        skipped = first_in(terms, candidate.then) or first_in(terms, candidate.orelse)
    else:
        assert op is not None
        shown = anchor(op, calls)
        place, text = shown.place, getattr(shown, "text", "")
    return Divergence(
        shape,
        node,
        place,
        text,
        node.condition,
        node.place,
        node.text,
        node.form,
        taints,
        candidate.k.calls,
        diverging,
        others,
        through_call=call_name(calls),
        jump=jump,
        operation=op or skipped,
        implicit=bool(op is not None and op.implicit),
        regions=candidate.k.regions,
    )


def per_host(condition: Value) -> bool:
    """Whether a condition reads what may differ from host to host: the environment, the file system, data."""
    if condition.taint:
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


def _loop_divergence(candidate: _Candidate, node: Loop, terms: Terms, quiet: Reader) -> Divergence:
    op, calls = first_op(node.body, quiet)
    shown = anchor(op, calls) if op is not None else node
    text = op.text if op is not None else node.text
    return Divergence(
        "trip",
        node,
        shown.place,
        getattr(shown, "text", node.text),
        node.count,
        node.place,
        node.text,
        node.form,
        candidate.taints,
        candidate.k.calls,
        (f"leaves the loop `{node.text}` after fewer rounds",),
        (text, "(one more round)"),
        through_call=call_name(calls),
        operation=op,
        regions=candidate.k.regions,
    )


_BROAD = frozenset({"Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "DistBackendError", "DistError"})
_IO = frozenset({"OSError", "IOError", "FileNotFoundError", "PermissionError", "ConnectionError", "TimeoutError"})


def _try_divergences(candidate: _Candidate, node: Try, terms: Terms, quiet: Reader) -> Iterator[Divergence]:
    from .columns import lines

    if node.form != "try" and not node.handlers:
        return
    hard = _hard_op(node.body, quiet)
    body_k = candidate.body_k or candidate.k
    k = candidate.k.but(raises=lambda _name: ABORT, raise_key="abort")
    for handler in node.handlers:
        broad = not handler.names or any(n in _BROAD for n in handler.names)
        if not broad and not (any(n in _IO for n in handler.names) and _has_io(node.body)):
            continue
        after_error = quiet.read(handler.body, k)
        own_op, own_calls = first_op(handler.body, quiet)
        if hard is not None and after_error != ABORT and not _meant_for_own_raise(handler, node.body):
            normal = quiet.read(node.body, body_k)
            if normal != after_error:
                jump = first_jump(handler.body)
                jump = jump if jump is not None and jump.kind != "raise" else _last_jump(handler.body)
                place = jump.place if jump is not None else handler.place
                yield Divergence(
                    "swallow",
                    node,
                    place,
                    jump.text if jump is not None else handler.text,
                    None,
                    handler.place,
                    handler.text,
                    "except",
                    (Taint("exception", node.place, "an exception on one rank only", "likely"),),
                    candidate.k.calls,
                    ("an exception in the try body", *lines(terms, after_error)),
                    lines(terms, normal),
                    jump=jump,
                    operation=hard,
                    regions=candidate.k.regions,
                    extra={"catches": ", ".join(handler.names) or "everything"},
                )
                continue
        if own_op is not None and after_error != quiet.read(node.body, body_k):
            shown = anchor(own_op, own_calls)
            yield Divergence(
                "handler",
                node,
                shown.place,
                getattr(shown, "text", ""),
                None,
                handler.place,
                handler.text,
                "except",
                (Taint("exception", node.place, "an exception on one rank only", "likely"),),
                candidate.k.calls,
                ("an exception in the try body", *lines(terms, after_error)),
                lines(terms, quiet.read(node.body, body_k)),
                through_call=call_name(own_calls),
                operation=own_op,
                regions=candidate.k.regions,
            )


def call_name(path: tuple[Node, ...]) -> str:
    """The name of the first followed call on a path."""
    return next((node.name for node in path if isinstance(node, Call)), "")


def _last_jump(nodes: Tree) -> Jump | None:
    for node in reversed(nodes):
        if isinstance(node, Jump) and node.kind in ("return", "break", "continue"):
            return node
    return None


def _hard_op(nodes: Tree, reader: Reader) -> Op | None:
    """An operation that an exception of the body can skip; a mere DDP forward is none."""
    for node in nodes:
        if isinstance(node, Op) and reader.counts(node) and not (node.implicit and "forward" in node.name):
            return node
        for child in subtrees(node):
            found = _hard_op(child, reader)
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
        if any(_meant_for_own_raise(handler, child) for child in subtrees(node)):
            return True
    return False


def _has_io(nodes: Tree) -> bool:
    from .nodes import Fallible

    for node in nodes:
        if isinstance(node, Fallible) and node.io:
            return True
        if any(_has_io(child) for child in subtrees(node)):
            return True
    return False
