"""Frames: the activation of one function while its body is interpreted.

Terminology: a frame has a *state* (None where control cannot come), an *out* list to which trace nodes are
appended, and a *path*: the conditions under which the current statement is reached after early exits.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..traces.catching import is_caught
from ..traces.nodes import Tree
from ..values.value import NO_TAINT, Place, Taints, Value, place_of, union
from .state import CELL, State

if TYPE_CHECKING:
    from ..names.functions import FunctionInfo
    from ..names.modules import Module
    from .machine import Machine
    from .partly import Partly

MAX_RAISES = 24
YieldHook = Callable[["Frame", Value, ast.AST], Value]


class LoopFrame:
    """What leaves a loop's body early: states at break and continue, and why only some ranks may do so."""

    __slots__ = ("breaks", "continues", "ends", "last", "node", "path_length", "retried")

    def __init__(self, path_length: int, node: ast.AST | None = None) -> None:
        self.breaks: list[tuple[State, Taints]] = []
        self.continues: list[tuple[State, Taints]] = []
        self.ends: list[State] = []
        self.path_length = path_length
        self.node = node
        self.retried: Taints = (
            NO_TAINT  # why ranks that leave here may do so in another round: memory runs out on one
        )
        self.last: Taints = NO_TAINT  # the same of those that have left by a break


class Raised(NamedTuple):
    """A state in which something is raised, why only some ranks come there, and the class that is raised."""

    state: State
    taint: Taints
    name: str
    value: Taints = NO_TAINT  # of the exception itself


class Watch:
    """How a try body may be left: states in which any statement may fail, and those of explicit raises.

    ``clauses`` are the class names of the except clauses around it; ``since`` is where its path begins.
    """

    __slots__ = ("clauses", "raises", "since", "states")

    def __init__(self, entry: State, since: int, clauses: Sequence[tuple[str, ...]] = ()) -> None:
        self.states = [entry]
        self.raises: list[Raised] = []
        self.since = since
        self.clauses = clauses

    def catches(self, name: str) -> bool:
        """Whether a clause catches the class."""
        return any(is_caught(names, name) for names in self.clauses)


class Collecting:
    """Redirects a frame's nodes to a new tree for the time of a with statement."""

    __slots__ = ("frame", "saved")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __enter__(self) -> Tree:
        self.saved = self.frame.out
        nodes: Tree = []
        self.frame.out = nodes
        return nodes

    def __exit__(self, *exception: object) -> None:
        self.frame.out = self.saved


class Frame:
    """One activation of a function, a lambda, or a module's top level."""

    def __init__(
        self,
        machine: Machine,
        module: Module,
        function: FunctionInfo | None,
        state: State,
        depth: int,
        *,
        enclosing: Frame | None = None,
    ) -> None:
        self.machine = machine
        self.module = module
        self.function = function
        self.state: State | None = state
        self.depth = depth
        self.enclosing = enclosing
        self.out: Tree = []
        self.path: list[tuple[Value, bool]] = []
        self.returns: list[tuple[tuple[tuple[Value, bool], ...], Value, State]] = []
        self.loops: list[LoopFrame] = []
        self.watchers: list[Watch] = []
        self.caller: Frame | None = None
        self.escaped: list[Raised] = []
        self.serial = machine.next_serial()
        self.defaults: dict[int, Value] = {}  # of the functions that are defined here, by expression
        self.yield_hook: YieldHook | None = None
        self.arms: tuple[bool, ...] = ()  # of the choices of a manager, in whose bodies it is now
        self.yielded: list[Value] = []
        self.local_imports: dict[str, str] | None = None
        self.handled: list[tuple[str, Value]] = []
        self.self_value: Value | None = None
        self.called_at: Place | None = None
        self.loop_depth = 0
        self.partly: dict[str, Partly] = {}
        self.narrowed: dict[str, tuple[object, str]] = {}  # by expression: the value's key, the told class

    @property
    def live(self) -> State:
        """The current state; where control cannot come, one that nobody will see."""
        return self.state if self.state is not None else State({})

    def cell(self, name: str) -> Hashable:
        """The heap object of a variable of this frame that nested functions assign."""
        return (CELL, self.serial, name)

    @property
    def nesting(self) -> int:
        """How often this function is being followed at once: tells the objects of a recursion apart."""
        return self.machine.stack.count(self.function) if self.function is not None else 0

    @property
    def reachable(self) -> bool:
        """Whether control can come here."""
        return self.state is not None

    def record_raise(self, name: str, value: Taints = NO_TAINT) -> None:
        """Tell the innermost try statement, here or in a caller, that something is raised in this state."""
        if self.state is not None:
            self.hand_on(Raised(self.state.copy(), NO_TAINT, name, value))

    def hand_on(self, raised: Raised) -> None:
        """Tell of something that is raised, or not caught, at this place."""
        frame: Frame = self
        state, taint = raised.state, raised.taint
        while not frame.watchers:
            taint = union(taint, frame.path_taint())
            if len(frame.escaped) < MAX_RAISES:
                frame.escaped.append(raised._replace(state=state, taint=taint))
            if frame.caller is None:
                return
            frame = frame.caller
            state = State(dict(frame.live.variables), state.heap)
        watch = frame.watchers[-1]
        if len(watch.raises) < MAX_RAISES:
            taint = union(taint, frame.path_taint(watch.since))
            watch.raises.append(raised._replace(state=state, taint=taint))

    def place(self, node: ast.AST) -> Place:
        """Where a node stands; remembered on the node."""
        known: Place | None = getattr(node, "_spmdguard_place", None)
        if known is not None and known.filename is self.module.filename:
            return known
        place = place_of(self.module.filename, node)
        node._spmdguard_place = place  # type: ignore[attr-defined]
        return place

    def collecting(self) -> Collecting:
        """Collect the nodes of a subtree."""
        return Collecting(self)

    def path_taint(self, since: int = 0) -> Taints:
        """Why only some ranks come here, as far as early exits and enclosing branches of this frame say."""
        if len(self.path) <= since:
            return NO_TAINT
        return union(*(condition.taint for condition, _ in self.path[since:]))
