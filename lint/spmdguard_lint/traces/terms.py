"""Terms: what follows, as one comparable object.

Terminology: the *term* of a place is the collective trace from there to the function's exit: a chain of
operations with alternatives and loops. Terms are hash-consed, so that two traces are equal exactly when
their numbers are equal; shared continuations are stored once and the size stays linear in the tree.

``Reader`` computes terms from back to front, passing each subtree the continuation for every way to leave
it (falling through, return, break, continue, raise). That is where a finally block is copied per way out and
where an exception finds its handler. With a valuation the conditions it decides are decided (the two-rank
reading); others stay alternatives labelled by what is left of the condition.

Invariant: a loop body without any operation vanishes; ``destroy`` counts only where an operation follows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from ..values.evaluate import UNKNOWN, Valuation, evaluate, rank_dependent, residual, truth
from ..values.value import intern
from .catching import ENDING_AN_ERROR, LEAVING, catches
from .members import made_of
from .nodes import (
    APART,
    Branch,
    Call,
    Handler,
    Jump,
    Loop,
    Node,
    Op,
    Region,
    Tree,
    Try,
    Yielded,
    outside,
    shadowed,
    without_exchange,
)
from .questions import question
from .raising import chooses_to_raise

if TYPE_CHECKING:
    from ..values.value import Value

STARTING = frozenset({"init_process_group", "init_distributed", "handshake"})
END = 0
ABORT = 1
NEVER = 2
MAX_READ = 60_000
MAX_ROUNDS = 8  # of a loop that is read round by round for one rank


class TooLarge(Exception):
    """The tree was read too often; what is known so far stands."""


class Terms:
    """The table of all terms of one root; a term is its index."""

    def __init__(self) -> None:
        self.items: list[tuple[Any, ...]] = [("end",), ("abort",), ("never",)]
        self.index: dict[tuple[Any, ...], int] = {item: i for i, item in enumerate(self.items)}
        self.operates: list[bool] = [False, False, False]
        self.texts: dict[int, Op] = {}

    def make(self, item: tuple[Any, ...], operates: bool) -> int:
        known = self.index.get(item)
        if known is None:
            known = self.index[item] = len(self.items)
            self.items.append(item)
            self.operates.append(operates)
        return known

    def leaf(self, kind: str, depth: int, operates: bool) -> int:
        return self.make((kind, depth, operates), operates)

    def op(self, node: Op, key: Hashable, rest: int) -> int:
        term = self.make(("op", key, rest), True)
        self.texts.setdefault(term, node)
        return term

    def alt(self, key: Hashable, then: int, orelse: int) -> int:
        if then == orelse:
            return then
        if isinstance(key, tuple) and len(key) == 2 and key[0] == "not":
            key, then, orelse = key[1], orelse, then
        if NEVER in (then, orelse):
            return orelse if then == NEVER else then
        both: list[int] = []
        while then != orelse and self._begin_alike(then, orelse):
            both.append(then)
            then, orelse = self.items[then][2], self.items[orelse][2]
        term = then
        if then != orelse:
            term = self.make(("alt", key, then, orelse), self.operates[then] or self.operates[orelse])
        for first in reversed(both):
            term = self.op(self.texts[first], self.items[first][1], term)
        return term

    def _begin_alike(self, one: int, other: int) -> bool:
        """Whether two terms begin with the same operation: what both ways do comes before the choice."""
        return self.items[one][0] == "op" and self.items[one][:2] == self.items[other][:2]

    def loop(self, count: Hashable, body: int, after: int, broken: int) -> int:
        return self.make(("loop", count, body, after, broken), True)


class Continuation:
    """Where each way out of a subtree leads; terms are computed when asked for."""

    __slots__ = (
        "brk",
        "calls",
        "caught",
        "cont",
        "depth",
        "fall",
        "number",
        "outer",
        "raise_key",
        "raises",
        "regions",
        "ret",
    )

    def __init__(
        self,
        fall: int,
        ret: int,
        raises: Callable[[str], int],
        *,
        brk: int = END,
        cont: int = END,
        calls: tuple[Call, ...] = (),
        depth: int = 0,
        outer: Continuation | None = None,
        regions: tuple[str, ...] = (),
        raise_key: Hashable = None,
        caught: Callable[[str], bool] = lambda _name: False,
    ) -> None:
        self.fall = fall
        self.ret = ret
        self.raises = raises
        self.brk = brk
        self.cont = cont
        self.calls = calls
        self.depth = depth
        self.outer = outer
        self.regions = regions
        self.raise_key = raise_key
        self.caught = caught
        self.number: int | None = None

    def key(self) -> int:
        """Continuations with equal keys lead to equal terms."""
        known = self.number
        if known is None:
            outer = None if self.outer is None else self.outer.key()
            known = self.number = intern(
                (self.fall, self.ret, self.brk, self.cont, self.depth, self.raise_key, self.regions, outer)
            )
        return known

    def but(self, **changes: Any) -> Continuation:
        new = Continuation.__new__(Continuation)
        new.fall = self.fall
        new.ret = self.ret
        new.raises = self.raises
        new.brk = self.brk
        new.cont = self.cont
        new.calls = self.calls
        new.depth = self.depth
        new.outer = self.outer
        new.regions = self.regions
        new.raise_key = self.raise_key
        new.caught = self.caught
        new.number = None
        for name, value in changes.items():
            setattr(new, name, value)
        return new


def root_continuation() -> Continuation:
    """A root ends by falling off, returning or raising alike."""
    return Continuation(END, END, lambda _name: END)


class Watcher:
    """What a reader tells while it reads; the base class ignores everything."""

    def branch(self, node: Branch, then: int, orelse: int, k: Continuation, reader: Reader) -> None: ...

    def loop(self, node: Loop, k: Continuation, reader: Reader) -> None: ...

    def try_(self, node: Try, k: Continuation, body_k: Continuation, reader: Reader) -> None: ...

    def op(self, node: Op, k: Continuation, rest: int, reader: Reader) -> None: ...


class Reader:
    """Reads trace trees into terms."""

    def __init__(
        self,
        terms: Terms,
        watcher: Watcher | None = None,
        valuation: Valuation | None = None,
        *,
        subgroups: bool = True,
        group_key: Callable[[Op], Hashable] | None = None,
        budget: int = MAX_READ,
    ) -> None:
        self.terms = terms
        self.watcher = watcher
        self.valuation = valuation
        self.subgroups = subgroups
        self.group_key = group_key or (lambda op: None if op.group is None else op.group.key)
        self.left = budget
        self.enclosing: list[tuple[Tree, Continuation]] = []
        self.operating, self.leaving = dict[int, bool](), dict[int, frozenset[str]]()
        self.memo: dict[tuple[int, int], int] = {}
        self.by_valuation: dict[Hashable, Reader] = {}
        self.decided: dict[int, tuple[bool | None, Hashable]] = {}
        self.held: list[Tree] = []  # made on the way: what was read is remembered by identity
        self.more_worlds: list[tuple[int, int, tuple[int, ...]]] = []
        self.nobody_raises = self.any_item = False  # see ``matching.Question``

    def read(self, nodes: Tree, k: Continuation) -> int:
        """The term of a list of nodes followed by a continuation."""
        if not nodes or (not self.has_ops(nodes) and not self.ways_out(nodes)):
            return k.fall
        key = (id(nodes), k.key())
        if key not in self.memo:
            self.memo[key] = self._read(nodes, k)
        return self.memo[key]

    def _read(self, nodes: Tree, k: Continuation) -> int:
        self.left -= len(nodes) + 1
        if self.left < 0:
            raise TooLarge
        self.enclosing.append((nodes, k))
        term = k.fall
        for node in reversed(nodes):
            term = self._node(node, k if term == k.fall else k.but(fall=term))
        self.enclosing.pop()
        return term

    def _node(self, node: Node, k: Continuation) -> int:
        if isinstance(node, Op):
            return self._op(node, k)
        if isinstance(node, Branch):
            return self._branch(node, k)
        if isinstance(node, Jump):
            return self.jump(node, k)
        if isinstance(node, Call):
            return self._call(node, k)
        if isinstance(node, Loop):
            return self._loop(node, k)
        if isinstance(node, Try):
            return self._try(node, k)
        if isinstance(node, Region):
            return self._region(node, k)
        if isinstance(node, Yielded):
            return self._yielded(node, k)
        return k.fall

    def counts(self, node: Op) -> bool:
        """Whether an operation takes part in collective traces."""
        if node.kind == "point-to-point" or node.name in STARTING:
            return False
        return self.subgroups or self.group_key(node) is None

    def _op(self, node: Op, k: Continuation) -> int:
        if not self.counts(node) or shadowed(node, k.regions):
            return k.fall
        if node.name == "destroy_process_group" and not self.terms.operates[k.fall]:
            return k.fall
        if self.watcher is not None:
            self.watcher.op(node, k, k.fall, self)
        if node.name == "backward" and "no-sync" in k.regions:
            node = without_exchange(node)
        return self.terms.op(node, (node.name, self.group_key(node) or made_of(node, self.valuation)), k.fall)

    def _branch(self, node: Branch, k: Continuation) -> int:
        if node.form == "while":
            return k.fall
        decided = None if self.valuation is None else self._decide(node.condition, self.valuation)
        known, key = decided or (None, node.condition.key)
        if known is not None:
            return self.read(node.then if known else node.orelse, k)
        then, orelse = self.read(node.then, k), self.read(node.orelse, k)
        if then != orelse and NEVER not in (then, orelse) and self.watcher is not None:
            self.watcher.branch(node, then, orelse, k, self)
        key = question(node) or key
        if self.any_item and k.depth and not node.condition.taint:
            key, then, orelse = ("item", k.depth), min(then, orelse), max(then, orelse)
        return self.terms.alt(key, then, orelse)

    def _decide(self, condition: Value, valuation: Valuation) -> tuple[bool | None, Hashable]:
        """What a valuation makes of a condition: its truth, or the key of what is left of it."""
        found = self.decided.get(condition.key)
        if found is None:
            known = truth(condition, valuation)
            rest = None if known is not None else residual(condition, valuation)
            found = self.decided[condition.key] = (known, rest)
        return found

    def jump(self, node: Jump, k: Continuation) -> int:
        """The term that a jump goes on with."""
        if node.kind == "return":
            return k.ret
        if node.kind == "break":
            return k.brk
        if node.kind == "continue":
            return k.cont
        if node.kind == "end":
            return k.fall
        if node.kind == "assert":
            return NEVER
        if self.nobody_raises and node.kind == "raise" and not k.caught(node.exception):
            return NEVER
        return k.raises(node.exception or ("SystemExit" if node.kind == "exit" else ""))

    def _call(self, node: Call, k: Continuation) -> int:
        outer = k
        if node.mode == "manager":
            from .resuming import after_rest

            outer = after_rest(self, node, k)
        inner = k.but(ret=k.fall, calls=(*k.calls, node), brk=END, cont=END, outer=outer)
        return self.read(node.body, inner)

    def _region(self, node: Region, k: Continuation) -> int:
        if node.kind in APART:
            return k.fall
        if node.kind != "deferred":
            return self.read(node.body, k.but(regions=(*k.regions, node.kind)))

        def raises(name: str) -> int:
            return k.raises(name) if LEAVING.intersection(name.split("|")) else k.fall

        key = ("deferred", k.fall, k.raise_key)
        kept = k.but(raises=raises, raise_key=key, caught=lambda _name: True)
        return self.read(node.body, kept.but(regions=(*k.regions, "deferred")))

    def _yielded(self, node: Yielded, k: Continuation) -> int:
        """The caller's block inside a suspended generator: its other ways out lead to the caller."""
        outer = k.outer
        if outer is None:
            return self.read(node.body, k)
        inside = outer.but(fall=k.fall, raises=k.raises, raise_key=k.raise_key, caught=k.caught)
        if node.form == "for":
            inside = inside.but(brk=outer.fall, cont=k.fall)
        return self.read(node.body, inside)

    def _loop(self, node: Loop, k: Continuation) -> int:
        after_normal = self.read(node.orelse, k) if node.orelse else k.fall
        rounds = self._count(node)
        known = rounds[1] if isinstance(rounds, tuple) and isinstance(rounds[1], int) else None
        if not self.has_ops(node.body):
            inside = self.read(node.body, k.but(fall=after_normal, cont=after_normal, brk=k.fall))
            if inside != after_normal and NEVER not in (inside, after_normal) and self.watcher is not None:
                self.watcher.loop(node, k, self)
            if known is not None:
                return inside if known > 0 else after_normal
            return self.terms.alt(("rounds", node.place), inside, after_normal)
        if self.watcher is not None:
            self.watcher.loop(node, k, self)
        by_rank = node.form == "for" and node.count is not None and rank_dependent(node.count)
        if by_rank and known is not None and known <= MAX_ROUNDS:
            term = after_normal
            for _ in range(known):
                term = self.read(node.body, k.but(fall=term, cont=term, brk=k.fall))
            return term
        conditions = (n for n in node.body if isinstance(n, Branch) and n.form == "while")
        endless = node.form == "while" and next(conditions, None) is None
        follows = self.terms.operates[k.fall]
        next_leaf = self.terms.leaf("next", k.depth, follows)
        break_leaf = self.terms.leaf("break", k.depth, follows) if not node.orelse else k.fall
        body = k.but(fall=next_leaf, cont=next_leaf, brk=break_leaf, depth=k.depth + 1)
        term = self.read(node.body, body)
        if term == next_leaf:
            return after_normal
        if endless:
            after_normal = NEVER
        return self.terms.loop(rounds, term, after_normal, k.fall)

    def _count(self, node: Loop) -> Hashable:
        if node.count is not None and self.valuation is not None:
            result = evaluate(node.count, self.valuation)
            if result is not UNKNOWN:
                return ("n", result)
            if rank_dependent(node.count):  # another expression for each rank
                return ("n of", residual(node.count, self.valuation))
        return node.count.key if node.count is not None and node.count.tag == "const" else None

    def _try(self, node: Try, k: Continuation) -> int:
        if node.final:
            k = self._with_final(node.final, k)
        handler_terms: dict[int, int] = {}
        after_body = self.read(node.orelse, k) if node.orelse else k.fall
        body_k = self._guarded(node, k, after_body, handler_terms)
        if self.watcher is not None:
            self.watcher.try_(node, k, body_k, self)
            for position, handler in enumerate(node.handlers):
                handler_terms.setdefault(position, self._handler(handler, k))
        return self.read(node.body, body_k)

    def _guarded(self, node: Try, k: Continuation, after: int, handler_terms: dict[int, int]) -> Continuation:
        """The continuation of a try body; ``handler_terms`` keeps what follows each clause."""

        def raises(name: str) -> int:
            for position, handler in enumerate(node.handlers):
                if catches(handler, name):
                    if position not in handler_terms:
                        handler_terms[position] = self._handler(handler, k)
                    term = handler_terms[position]
                    # one that always raises is followed by what it raises, often another exception
                    return self.read(handler.body, k) if term == NEVER else term
            return k.raises(name)

        def caught(name: str) -> bool:
            return any(catches(handler, name) for handler in node.handlers) or k.caught(name)

        return k.but(fall=after, raises=raises, raise_key=(id(node), k.key()), caught=caught)

    def _handler(self, handler: Handler, k: Continuation) -> int:
        """What follows a caught exception.

        A handler that may raise again is read for where it does not: its other answer is meant for the exception
        at hand. Where something else decides, the rank or a setting, both are compared.
        """
        if chooses_to_raise(handler.body, self.ways_out):
            return self.read(handler.body, k)
        return self.read(handler.body, k.but(raises=lambda _name: NEVER, raise_key="never"))

    def _with_final(self, final: Tree, k: Continuation) -> Continuation:
        cache: dict[int, int] = {}

        def through(term: int) -> int:
            cache[term] = found = cache[term] if term in cache else self.read(final, k.but(fall=term))
            return found

        return k.but(
            fall=through(k.fall),
            ret=through(k.ret),
            brk=through(k.brk),
            cont=through(k.cont),
            raises=lambda name: through(k.raises(name)),
            raise_key=("final", id(final), k.raise_key),
            caught=lambda name: bool(ENDING_AN_ERROR & self.ways_out(final)) or k.caught(name),
        )

    def ways_out(self, nodes: Tree) -> frozenset[str]:
        """The kinds of jumps by which a tree may be left."""
        key = id(nodes)
        known = self.leaving.get(key)
        if known is None:
            found: set[str] = set()
            for node in nodes:
                if isinstance(node, Jump):
                    if node.kind != "end":
                        found.add(node.kind)
                    continue
                if isinstance(node, Op) and node.name == "destroy_process_group":
                    found.add("destroy")
                for child in node.subtrees():
                    found |= outside(node, child, self.ways_out(child))
            known = self.leaving[key] = frozenset(found)
        return known

    def has_ops(self, nodes: Tree) -> bool:
        """Whether any operation that counts stands in a tree."""
        key = id(nodes)
        if key not in self.operating:
            self.operating[key] = any(map(self.operates, nodes))
        return self.operating[key]

    def operates(self, node: Node) -> bool:
        """Whether any operation that counts stands in a node."""
        if isinstance(node, Op):
            return self.counts(node) and node.name != "destroy_process_group"
        return any(self.has_ops(child) for child in node.subtrees())
