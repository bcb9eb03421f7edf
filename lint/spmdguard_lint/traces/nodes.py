"""Trace trees: what a piece of code does towards the other ranks, in the structure of the code.

Terminology: a *trace tree* is a list of nodes. ``Op`` is a communication call; ``Branch``, ``Loop``,
``Call``, ``Try`` and ``Yielded`` hold subtrees; ``Jump`` leaves (return, break, continue, raise, exit);
``Event`` marks what the life-cycle and checkpoint rules look for; ``Fallible`` marks an operation that may
raise on one rank alone. Python has no goto, so the tree together with its jumps carries exactly what a
control-flow graph with exceptional edges and its post-dominator tree would; finally blocks are not copied
here but when a tree is read with a continuation (see ``terms``).

Invariant: nodes stand in execution order, and a subtree is never shared between two call sites.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..values.value import Place, Taint, Taints, Value


class Node:
    """Base of all nodes; ``place`` is where it stands in the source."""

    __slots__ = ("place",)

    def __init__(self, place: Place) -> None:
        self.place = place

    def subtrees(self) -> Sequence[Tree]:
        """The trees directly inside, without those that run apart."""
        return ()


Tree = list[Node]
Own = tuple[Hashable, bool, "Place", str]
_COLLECTIVES = (
    "all_",
    "reduce",
    "broadcast",
    "gather",
    "scatter",
    "barrier",
    "monitored_barrier",
    "wait_for",
)
OWN_IN_JOIN = "join-own"  # a region of uneven inputs with collectives that nothing shadows
APART = frozenset({"thread", "exit", "worker"})  # regions that run at a moment of their own
LISTED = "listed"  # the region of coroutines that a list holds: awaited later, in an order that is not known


class Verdict(NamedTuple):
    """What a rank tells of a try statement: "success" (true where nothing was caught there), or "failure".

    ``into`` is the list that then holds what all ranks have told.
    """

    says: str
    place: Place
    into: Hashable = None


class Op(Node):
    """A communication call: ``name`` and ``group`` identify it in the collective trace.

    ``kind`` is "collective", "lifecycle", "point-to-point" or "request" (a flag that asks the trainer for
    something that all ranks do); all but "point-to-point" count in a trace. ``tensors`` are the expressions that
    its first arguments are made of, ``paths`` the names under which every rank writes its part. ``implicit`` says
    that the call hides the collective (a DDP forward, ``backward()``). ``begins`` says whether it only begins the
    operation (None: a variable decides), ``at_root`` whether the list is given that the root alone has, ``sizes`` how
    many objects are shared, or how many rows are expected from and sent to each rank, ``sent`` what a broadcast sends
    or fills. ``tells`` says that what is given says whether this rank has caught an exception. ``own`` holds what it
    joins: the value's key, whether it is a number made into a tensor, and where it is given, in which words. ``once``
    says that the call is made where its result is not there yet. ``verdict`` is what it is given says of such an
    exception.
    """

    __slots__ = (
        "at_root",
        "begins",
        "certainty",
        "group",
        "handle",
        "implicit",
        "invariant",
        "kind",
        "name",
        "once",
        "own",
        "paths",
        "root",
        "sent",
        "sizes",
        "tells",
        "tensors",
        "text",
        "verdict",
    )

    def __init__(
        self,
        place: Place,
        name: str,
        kind: str,
        group: Value | None,
        text: str,
        *,
        implicit: bool = False,
        root: Value | None = None,
        certainty: str = "definite",
    ) -> None:
        super().__init__(place)
        self.name = name
        self.kind = kind
        self.group = group
        self.text = text
        self.implicit = implicit
        self.root = root
        self.handle = False
        self.begins: bool | None = None
        self.at_root: Value | None = None
        self.invariant: tuple[Value, ...] = ()
        self.paths: tuple[Value, ...] = ()
        self.sent: Value | None = None
        self.own: tuple[Own, ...] = ()
        self.sizes: tuple[Value, ...] = ()
        self.tensors: tuple[Value, ...] = ()
        self.tells = False
        self.verdict: Verdict | None = None
        self.once = False
        self.certainty = certainty


def without_exchange(backward: Op) -> Op:
    """A backward pass that leaves the exchange of gradients out: not the one of the ranks that exchange them."""
    text = f"{backward.text}, without exchange"
    return Op(backward.place, "backward alone", backward.kind, backward.group, text, implicit=True)


def is_own(op: Op) -> bool:
    """Whether a program calls a collective itself: no pass of a wrapped model, and no step of its optimizer."""
    name = op.name.rpartition(".")[2]
    return op.kind == "collective" and not op.implicit and name.startswith(_COLLECTIVES)


def shadowed(op: Op, regions: tuple[str, ...]) -> bool:
    """Whether uneven inputs are no matter for an operation: the wrapped model takes part for ranks that have none."""
    return OWN_IN_JOIN in regions and not is_own(op)


class Event(Node):
    """Something the life-cycle and checkpoint rules look for: ``call`` is the known name of what is called."""

    __slots__ = ("args", "call", "keywords", "name", "receiver", "text")

    def __init__(
        self,
        place: Place,
        name: str,
        text: str,
        args: tuple[Value, ...] = (),
        *,
        call: str = "",
        receiver: Value | None = None,
        keywords: dict[str, Value] | None = None,
    ) -> None:
        super().__init__(place)
        self.name = name
        self.text = text
        self.args = args
        self.call = call
        self.receiver = receiver
        self.keywords = keywords or {}


class Fallible(Node):
    """An operation that may raise on one rank alone.

    ``io``: a file, network or tracker operation; ``own``: it reads this rank's own data (``float(line)``);
    ``sure``: why it raises each time, where that is known.
    """

    __slots__ = ("io", "own", "sure", "text")

    def __init__(self, place: Place, text: str, io: bool, *, own: bool = False, sure: str = "") -> None:
        super().__init__(place)
        self.own = own
        self.sure = sure
        self.text = text
        self.io = io


class Branch(Node):
    """Two arms and the condition that chooses; ``form`` is "if", "ternary", "short-circuit", "match" or "assert"."""

    __slots__ = ("condition", "form", "orelse", "text", "then")

    def __init__(
        self, place: Place, condition: Value, then: Tree, orelse: Tree, form: str, text: str
    ) -> None:
        super().__init__(place)
        self.condition = condition
        self.then = then
        self.orelse = orelse
        self.form = form
        self.text = text

    def subtrees(self) -> Sequence[Tree]:
        return (self.then, self.orelse)


class Loop(Node):
    """A loop; ``trip`` says why ranks may run it a different number of times, ``iterated`` what a for loop runs over.

    ``order`` says why its items may come in another order on each rank.
    """

    __slots__ = ("body", "count", "form", "iterated", "order", "orelse", "text", "trip")

    def __init__(
        self,
        place: Place,
        body: Tree,
        orelse: Tree,
        trip: Taints,
        form: str,
        text: str,
        *,
        iterated: Value | None = None,
        count: Value | None = None,
    ) -> None:
        super().__init__(place)
        self.body = body
        self.orelse = orelse
        self.trip = trip
        self.form = form
        self.text = text
        self.iterated = iterated
        self.count = count
        self.order: tuple[Taint, ...] = ()

    def subtrees(self) -> Sequence[Tree]:
        return (self.body, self.orelse)


class Call(Node):
    """A call whose body was followed; return jumps in ``body`` end it.

    ``mode`` is "call", "generator", "manager" or "coroutine".
    """

    __slots__ = ("body", "mode", "name", "text")

    def __init__(self, place: Place, name: str, body: Tree, text: str, mode: str = "call") -> None:
        super().__init__(place)
        self.name = name
        self.body = body
        self.text = text
        self.mode = mode

    def subtrees(self) -> Sequence[Tree]:
        return (self.body,)


class Yielded(Node):
    """The body of a with statement or for loop, run while a generator function is suspended at its yield."""

    __slots__ = ("body", "form")

    def __init__(self, place: Place, body: Tree, form: str) -> None:
        super().__init__(place)
        self.body = body
        self.form = form

    def subtrees(self) -> Sequence[Tree]:
        return (self.body,)


class Handler:
    """An except clause: the exception names it catches (empty: all) and its body."""

    __slots__ = ("body", "names", "place", "text")

    def __init__(self, place: Place, names: tuple[str, ...], body: Tree, text: str) -> None:
        self.place = place
        self.names = names
        self.body = body
        self.text = text


class Try(Node):
    """A try statement, or a with statement whose manager cleans up (``final``) or swallows (a handler)."""

    __slots__ = ("body", "final", "form", "handlers", "orelse")

    def __init__(
        self, place: Place, body: Tree, handlers: list[Handler], orelse: Tree, final: Tree, form: str = "try"
    ) -> None:
        super().__init__(place)
        self.body = body
        self.handlers = handlers
        self.orelse = orelse
        self.final = final
        self.form = form

    def subtrees(self) -> Sequence[Tree]:
        return (self.body, *[handler.body for handler in self.handlers], self.orelse, self.final)


class Region(Node):
    """A stretch of code under a marker: "deferred" (its exceptions are kept for later) or "join" (uneven inputs).

    "join-own": one of uneven inputs which calls collectives besides those of the wrapped model: these alone count.
    "agreed": all ranks are told of an exception in it, and raise.

    Those of ``APART`` do not run where they stand: in another thread, when the interpreter or an object ends
    ("exit"), in the worker processes of a data loader ("worker").
    """

    __slots__ = ("body", "kind", "text")

    def __init__(self, place: Place, kind: str, body: Tree, text: str) -> None:
        super().__init__(place)
        self.kind = kind
        self.body = body
        self.text = text

    def subtrees(self) -> Sequence[Tree]:
        return () if self.kind in APART else (self.body,)


class Jump(Node):
    """Leaves the normal order: "return", "break", "continue", "raise" or "exit"; ``exception`` names what is raised."""

    __slots__ = ("exception", "kind", "text", "value")

    def __init__(
        self, place: Place, kind: str, text: str, exception: str = "", value: Value | None = None
    ) -> None:
        super().__init__(place)
        self.kind = kind
        self.text = text
        self.exception = exception
        self.value = value


def every_node(tree: Tree, *, apart: bool = False) -> Iterator[Node]:
    """Every node of a tree, outermost first; those that run apart from it only where asked for."""
    stack = list(reversed(tree))
    while stack:
        node = stack.pop()
        yield node
        inside = (node.body,) if apart and isinstance(node, Region) else node.subtrees()
        for child in reversed(inside):
            stack.extend(reversed(child))


def outside(node: Node, child: Tree, kinds: frozenset[str]) -> set[str]:
    """How jumps in a subtree of a node look from outside: a call contains returns, the body of a loop breaks.

    A block resumed inside a generator jumps in the function that consumes the generator ("outer").
    """
    if isinstance(node, Loop) and child is node.body:
        return set(kinds - {"break", "continue"})
    if isinstance(node, Call):
        return {k[6:] if k.startswith("outer-") else k for k in kinds if k not in ("return", "for-break")}
    if isinstance(node, Yielded):
        return {_resumed(kind, node) for kind in kinds}
    return set(kinds)


def _resumed(kind: str, node: Yielded) -> str:
    """How a jump in a resumed block looks in the generator; one out of several generators is one step further in."""
    if node.form == "for" and kind in ("break", "continue"):
        return "for-break"
    own = kind in ("return", "break", "continue", "for-break") or kind.startswith("outer-")
    return f"outer-{kind}" if own else kind
