"""Messages between ranks: what each rank of a small world sends and receives, and where they wait for one another.

Terminology: a *script* is the list of moves that one rank makes, a *move* one send, receive, wait or collective. A
*message* is matched by the first receive that names its sender (or nobody) and its tag. Played *eagerly*, a send ends
at once, as it does while messages fit into the buffers; else it ends when the other side receives.

Method: the tree of a root is read for each rank of a world, and the scripts are played against one another. Where it
is not known which moves a rank makes (an unknown partner, a condition that nothing decides), there are no scripts.
Cost: linear in the moves, times the ranks of small worlds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ..facts.build import P2P
from ..traces.contents import contents_of
from ..traces.divergence import group_key
from ..traces.nodes import (
    APART,
    LISTED,
    Branch,
    Call,
    Event,
    Jump,
    Loop,
    Node,
    Op,
    Region,
    Tree,
    Try,
    Yielded,
)
from ..values.evaluate import UNKNOWN, Valuation, evaluate, rank_dependent, truth
from ..values.value import alternatives, symbol
from .support_batches import Batches, asks_for_any, is_message

if TYPE_CHECKING:
    from ..values.value import Place, Value
    from .support_numbers import Numbers

SENDS = frozenset({"send", "isend", "send_object_list"})
RECEIVES = frozenset({"recv", "irecv", "recv_object_list"})
MESSAGES = SENDS | RECEIVES | {"batch_isend_irecv"}
_BLOCKING = frozenset({"send", "recv", "send_object_list", "recv_object_list"})
_FROM_ROOT = frozenset({"broadcast", "broadcast_object_list", "scatter", "scatter_object_list"})
_TO_ROOT = frozenset({"reduce", "gather", "gather_object"})
_MEETINGS = frozenset({"barrier", "monitored_barrier", "all_reduce", "all_gather", "all_gather_object"})
_MAX_MOVES, _MAX_ROUNDS = 400, 8


class Unclear(Exception):
    """It is not known which messages a rank sends."""


@dataclass(eq=False)
class Move:
    """One step of a rank; ``peer`` is None where any sender will do, ``places`` are the handles waited for.

    ``root`` is that of a collective which has one.
    """

    kind: str
    node: Node
    calls: tuple[Call, ...]
    peer: int | None = None
    tag: Hashable = 0
    blocking: bool = True
    places: frozenset[Place] = frozenset()
    root: int | None = None

    @property
    def text(self) -> str:
        """The call in the user's words."""
        return str(getattr(self.node, "text", ""))


@dataclass(eq=False)
class Message:
    """A send that was begun, and the receive that took it."""

    sender: int
    move: Move
    taken: Move | None = None


@dataclass(eq=False)
class Posted:
    """A receive that was begun."""

    move: Move
    message: Message | None = None


@dataclass(eq=False)
class Meeting:
    """A collective that a rank has begun, the ``number``-th of its own: it ends when all ranks have begun as many.

    Where there is a root, the others wait for it alone, or it alone waits; one that gives ends at once as sends do.
    """

    rank: int
    move: Move
    number: int


@dataclass
class Outcome:
    """How the scripts ended: where ranks stand for ever, what was sent, and the receive that a wait waits for.

    ``meeting`` are the ranks that wait for others in a collective, not for a message.
    """

    stuck: dict[int, Move] = field(default_factory=dict)
    meeting: set[int] = field(default_factory=set)
    sent: list[tuple[int, Message]] = field(default_factory=list)
    waits_for: dict[int, frozenset[int]] = field(default_factory=dict)
    receives: dict[int, Move] = field(default_factory=dict)

    def circle(self) -> list[int]:
        """Ranks of which each waits for the next one, and the last for the first."""
        for start in sorted(self.stuck):
            way = [start]
            while (following := self._next(way[-1])) is not None:
                if following in way:
                    return way[way.index(following) :]
                way.append(following)
        return []

    def _next(self, rank: int) -> int | None:
        others = self.waits_for.get(rank, frozenset())
        return min(others) if others and others <= self.stuck.keys() else None


class Scripts(NamedTuple):
    """What each rank of a world does; ``rough`` where a loop stands for an unknown number of rounds."""

    moves: list[list[Move]]
    rough: bool


def scripts_of(tree: Tree, world: int, local: int, numbers: Numbers | None = None) -> Scripts | None:
    """The scripts of all ranks of a world; None where they are not known.

    ``numbers`` are what a program that checks them may be told in a world of this size.
    """
    ranks = [Valuation(rank, world, local, numbers or {}) for rank in range(world)]
    try:
        readers = [_read(tree, at, once=False) for at in ranks]
        alike = bool(numbers) and _one_in_another(readers)
        rough = any(reader.rough for reader in readers) and not alike
        if rough:  # compared with such a loop, every loop is one round
            readers = [_read(tree, at, once=True) for at in ranks]
    except Unclear:
        return None
    return Scripts([reader.moves for reader in readers], rough)


def _one_in_another(readers: list[_Reader]) -> bool:
    """Whether all messages stand in the same loops whose rounds are not known: a round stands for all.

    Ranks may meet further out, as behind the inner one of two loops.
    """
    ways = {way for reader in readers for way in reader.ways}
    return len(ways) == 1 and all(
        way == next(iter(ways))[: len(way)] for reader in readers for way in reader.meetings
    )


def _read(tree: Tree, at: Valuation, *, once: bool) -> _Reader:
    reader = _Reader(at, once=once)
    reader.tree(tree, ())
    return reader


class _Reader:
    """Reads a tree for one rank."""

    def __init__(self, at: Valuation, *, once: bool) -> None:
        self.at = at
        self.once = once
        self.rough = False
        self.unknown: list[Hashable] = []  # the loops around whose rounds are not known
        self.ways: set[tuple[Hashable, ...]] = set()  # to messages
        self.meetings: set[tuple[Hashable, ...]] = set()
        self.batches = Batches()
        self.moves: list[Move] = []
        self.doubted = False

    def tree(self, nodes: Tree, calls: tuple[Call, ...]) -> str:
        """Read nodes in order; gives how they are left: "" at the end, or the kind of a jump."""
        for node in nodes:
            left = self.node(node, calls)
            if left:
                return left
        return ""

    def node(self, node: Node, calls: tuple[Call, ...]) -> str:
        if isinstance(node, Op):
            self._op(node, calls)
        elif isinstance(node, Event):
            if node.name == "wait" and node.receiver is not None:
                places = self.batches.waited(frozenset(handles(node.receiver)))
                self._add(Move("wait", node, calls, places=places))
            elif is_message(node) and not self.batches.add(node, self.at):
                raise Unclear
        elif isinstance(node, Jump):
            return node.kind
        elif isinstance(node, Branch):
            return self._branch(node, calls)
        elif isinstance(node, Loop):
            return self._loop(node, calls)
        elif isinstance(node, Call):
            left = self.tree(node.body, (*calls, node))
            return left if left in ("raise", "exit", "assert") else ""
        elif isinstance(node, Region):
            if node.kind in APART or node.kind == LISTED:
                self._refuse(node.body)
            else:
                return self.tree(node.body, calls)
        elif isinstance(node, Try):
            return self._try(node, calls)
        elif isinstance(node, Yielded):
            return self.tree(node.body, calls)
        return ""

    def _op(self, op: Op, calls: tuple[Call, ...]) -> None:
        if op.name == "batch_isend_irecv":
            begun = self.batches.take(op.place)
            if not begun:
                raise Unclear  # of a list that was made elsewhere
            for message in begun:
                self._message(message, calls)
        elif op.kind == "point-to-point":
            self._message(op, calls)
        elif _meets(op):
            rooted = op.name in _FROM_ROOT | _TO_ROOT
            root = evaluate(op.root, self.at) if rooted and op.root is not None else None
            known = not rooted or isinstance(root, int)
            self._add(Move("meet", op, calls, blocking=known and not op.begins, root=root if known else None))

    def _message(self, op: Op, calls: tuple[Call, ...]) -> None:
        receives = op.name in RECEIVES
        unknown = op.name not in SENDS and not receives
        if unknown or self.doubted or group_key(op) is not None or "group_" in op.text:
            raise Unclear
        peer = None if op.root is None else evaluate(op.root, self.at)
        tag = evaluate(op.invariant[0], self.at) if op.invariant else 0
        if not isinstance(peer, int) and not (peer is None and receives):
            raise Unclear
        if tag is UNKNOWN or not isinstance(tag, int):
            raise Unclear
        kind = "receive" if receives else "send"
        label: Hashable = ("object", tag) if "object" in op.name else tag
        self._add(Move(kind, op, calls, peer, label, op.name in _BLOCKING))

    def _add(self, move: Move) -> None:
        self.moves.append(move)
        if move.kind != "wait":
            (self.meetings if move.kind == "meet" else self.ways).add(tuple(self.unknown))
        if len(self.moves) > _MAX_MOVES:
            raise Unclear

    def _branch(self, node: Branch, calls: tuple[Call, ...]) -> str:
        known = truth(node.condition, self.at)
        if known is None and "batch_isend_irecv" in contents_of([node]).ops:
            asked = asks_for_any(node.condition)
            known = None if asked is None else asked is bool(self.batches.made)
        if known is not None:
            return self.tree(node.then if known else node.orelse, calls)
        self._refuse(node.then)
        self._refuse(node.orelse)
        if node.form == "while" and not node.condition.taint:
            return self.tree(node.orelse, calls)  # one round stands for all
        jumps = {jump.kind for arm in (node.then, node.orelse) for jump in _jumps(arm)}
        self.doubted = self.doubted or not jumps <= {"raise"}
        return ""

    def _loop(self, node: Loop, calls: tuple[Call, ...]) -> str:
        items = evaluate(node.iterated, self.at) if node.iterated is not None else UNKNOWN
        rounds = len(items) if isinstance(items, (range, tuple, list)) else None
        if rounds is None and node.trip:
            self._refuse(node.body)
            return ""
        before = len(self.moves)
        given = items if isinstance(items, range) else ()
        if rounds is None or rounds > _MAX_ROUNDS:
            self.unknown.append(node.place if node.iterated is None else node.iterated.key)
        left = self._rounds(node, calls, rounds, given)
        if rounds is None or rounds > _MAX_ROUNDS:
            self.unknown.pop()
        if any(move.kind != "wait" for move in self.moves[before:]):
            self.rough = self.rough or rounds is None or rounds > _MAX_ROUNDS
        return left

    def _rounds(self, node: Loop, calls: tuple[Call, ...], rounds: int | None, numbers: Sequence[int]) -> str:
        """Read a loop's rounds, each with its own number of a range; one, where their number is not known."""
        most = 1 if self.once or rounds is None else _MAX_ROUNDS
        number = symbol(("index", node.place)).key
        for current in range(most if rounds is None else min(rounds, most)):
            before = self.at
            if numbers and not self.once:
                self.at = replace(before, atoms={**before.atoms, number: numbers[current]})
            left = self.tree(node.body, calls)
            self.at = before
            if left in ("break", "end"):
                return ""
            if left not in ("", "continue"):
                return left
        return self.tree(node.orelse, calls)

    def _try(self, node: Try, calls: tuple[Call, ...]) -> str:
        left = self.tree(node.body, calls) or self.tree(node.orelse, calls)
        if node.form == "with" and left not in ("raise", "exit", "assert"):
            nothing = symbol(("exc-type", node.place)).key
            self.at = replace(self.at, atoms={**self.at.atoms, nothing: None})
        return self.tree(node.final, calls) or left

    def _refuse(self, nodes: Tree) -> None:
        contents = contents_of(nodes)
        if P2P in contents.events or not contents.ops.isdisjoint(MESSAGES):
            raise Unclear


def _meets(op: Op) -> bool:
    """Whether ranks wait for one another in an operation, at once or where its handle is waited for."""
    known = op.begins is not None or not op.handle
    named = op.name in _MEETINGS | _FROM_ROOT | _TO_ROOT
    return named and op.kind == "collective" and group_key(op) is None and known


def _jumps(nodes: Tree) -> Iterator[Jump]:
    """The jumps by which a tree of an arm may be left."""
    for node in nodes:
        if isinstance(node, Jump):
            yield node
        elif isinstance(node, Branch):
            yield from _jumps(node.then)
            yield from _jumps(node.orelse)
        elif isinstance(node, Try):
            for part in (node.body, *(h.body for h in node.handlers), node.orelse, node.final):
                yield from _jumps(part)
        elif isinstance(node, (Region, Yielded)):
            yield from _jumps(node.body)
        elif isinstance(node, Loop):
            yield from (jump for jump in _jumps(node.body) if jump.kind in ("return", "raise", "exit"))


def handles(receiver: Value) -> Iterator[Place]:
    """Where the operations were started whose handles a value may be."""
    for one in alternatives(receiver):
        if one.tag == "extobj" and isinstance(one.data[1], tuple) and len(one.data[1]) > 1:
            yield one.data[1][1]


class Play:
    """Scripts played against one another."""

    def __init__(self, scripts: list[list[Move]], *, eager: bool, last_first: bool = False) -> None:
        self.scripts = scripts
        self.order = range(len(scripts))[:: -1 if last_first else 1]
        self.eager = eager
        self.position = [0] * len(scripts)
        self.sent: list[tuple[int, Message]] = []
        self.posted: list[list[Posted]] = [[] for _ in scripts]
        self.begun: list[Message | Posted | Meeting | None] = [None] * len(scripts)
        self.meetings: list[list[Meeting]] = [[] for _ in scripts]

    def run(self) -> Outcome:
        """Move whoever can move, until nobody can."""
        moving = True
        while moving:
            moving = False
            for rank in self.order:
                moving = self._advance(rank) or moving
        outcome = Outcome(sent=self.sent)
        for rank, move in ((r, self._move(r)) for r in range(len(self.scripts))):
            if move is not None:
                outcome.stuck[rank] = move
                outcome.waits_for[rank] = self._waits_for(rank, move)
                if move.kind == "meet" or (move.kind == "wait" and not any(self._messages(rank, move))):
                    outcome.meeting.add(rank)
                outcome.receives.update((rank, one.move) for one in reversed(self._unmet(rank, move)))
        return outcome

    def _move(self, rank: int) -> Move | None:
        place = self.position[rank]
        return self.scripts[rank][place] if place < len(self.scripts[rank]) else None

    def _advance(self, rank: int) -> bool:
        move = self._move(rank)
        if move is None:
            return False
        if move.kind != "wait" and self.begun[rank] is None:
            self.begun[rank] = self._begin(rank, move)
            self._match()
            return True
        if not self._done(rank, move):
            return False
        self.begun[rank] = None
        self.position[rank] += 1
        return True

    def _begin(self, rank: int, move: Move) -> Message | Posted | Meeting:
        if move.kind == "meet":
            meeting = Meeting(rank, move, len(self.meetings[rank]) + 1)
            self.meetings[rank].append(meeting)
            return meeting
        if move.kind == "receive":
            posted = Posted(move)
            self.posted[rank].append(posted)
            return posted
        message = Message(rank, move)
        self.sent.append((move.peer or 0, message))
        return message

    def _match(self) -> None:
        """Give each receive that was begun the first message that fits."""
        for rank, waiting in enumerate(self.posted):
            for posted in (one for one in waiting if one.message is None):
                for receiver, message in self.sent:
                    named = posted.move.peer in (None, message.sender) and posted.move.tag == message.move.tag
                    if receiver == rank and message.taken is None and named:
                        posted.message, message.taken = message, posted.move
                        break

    def _done(self, rank: int, move: Move) -> bool:
        begun = self.begun[rank]
        if move.kind == "wait":
            return not any(True for _ in self._waited(rank, move))
        if isinstance(begun, Meeting):
            return not move.blocking or not self._missing(begun)
        if isinstance(begun, Posted):
            return not move.blocking or begun.message is not None
        if isinstance(begun, Message):
            return not move.blocking or self.eager or begun.taken is not None
        return True

    def _missing(self, meeting: Meeting) -> frozenset[int]:
        """The ranks that have not come to a collective, and without which it does not end on a rank."""
        missing = frozenset(rank for rank, begun in enumerate(self.meetings) if len(begun) < meeting.number)
        root = meeting.move.root
        if root is None:
            return missing
        gives = getattr(meeting.move.node, "name", "") in _FROM_ROOT
        if meeting.rank == root:
            return frozenset() if gives and self.eager else missing
        return missing & {root} if gives or not self.eager else frozenset()

    def _waited(self, rank: int, move: Move) -> Iterator[int]:
        """The ranks on which a wait still depends."""
        yield from self._messages(rank, move)
        for meeting in self.meetings[rank]:
            if meeting.move.node.place in move.places:
                yield from self._missing(meeting)

    def _messages(self, rank: int, move: Move) -> Iterator[int]:
        """The ranks on whose sends and receives a wait still depends."""
        for posted in self._unmet(rank, move):
            yield -1 if posted.move.peer is None else posted.move.peer
        for receiver, message in self.sent:
            mine = message.sender == rank and message.move.node.place in move.places
            if mine and message.taken is None and not self.eager:
                yield receiver

    def _unmet(self, rank: int, move: Move) -> list[Posted]:
        """The receives behind a wait for which no message has come."""
        return [p for p in self.posted[rank] if p.move.node.place in move.places and p.message is None]

    def _waits_for(self, rank: int, move: Move) -> frozenset[int]:
        if move.kind == "wait":
            return frozenset(self._waited(rank, move))
        begun = self.begun[rank]
        if isinstance(begun, Meeting):
            return self._missing(begun)
        return frozenset({-1 if move.peer is None else move.peer})


def runs_through(scripts: list[list[Move]]) -> bool:
    """Whether all ranks come to their ends where sends end at once."""
    return not Play(scripts, eager=True).run().stuck


def names_nobody(move: Move, rank: int, world: int) -> bool:
    """Whether a rank names itself, or a rank that the world does not have."""
    return move.peer is not None and (move.peer == rank or move.peer not in range(world))


def valid(scripts: Scripts) -> bool:
    """Whether every partner is another rank of the world."""
    ranks = range(len(scripts.moves))
    return not any(names_nobody(move, rank, len(ranks)) for rank in ranks for move in scripts.moves[rank])


def by_rank(move: Move) -> bool:
    """Whether the partner is computed from the rank."""
    return isinstance(move.node, Op) and move.node.root is not None and rank_dependent(move.node.root)
