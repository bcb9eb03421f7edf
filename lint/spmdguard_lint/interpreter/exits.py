"""What every way out of a block passes: a finally block, the ``__exit__`` of a context manager.

The block runs once, in a state that is any of those in which the guarded block is left: at its end, by return,
break or continue, by an exception. What it changes is then told to each of the ways out that are still under way.
"""

from __future__ import annotations

from collections.abc import Callable

from ..values.value import Taints, symbol, union
from .frame import Frame, Watch
from .state import State, join


class Exits:
    """The ways out of a guarded block that begins now; ends with ``pass_through``."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.watch = Watch(frame.live.copy(), len(frame.path))
        self.num_returns = len(frame.returns)
        loops = frame.loops
        self.marks = [(loop, len(loop.breaks), len(loop.continues)) for loop in loops[-1:]]
        frame.watchers.append(self.watch)

    def now(self) -> State | None:
        """The state of the frame at this moment."""
        return self.frame.state

    def states(self) -> list[tuple[State, Taints]]:
        """The states in which the block is left early, with the reasons why only some ranks do so."""
        frame = self.frame
        found = [
            (state, union(*(condition.taint for condition, _ in path[self.watch.since :])))
            for path, _value, state in frame.returns[self.num_returns :]
        ]
        for loop, num_breaks, num_continues in self.marks:
            found += [*loop.breaks[num_breaks:], *loop.continues[num_continues:]]
        return found

    def pass_through(self, final: Callable[[], None], place: object) -> None:
        """Run what every way out passes."""
        frame = self.frame
        frame.watchers.pop()
        normal = frame.state
        early = self.states()
        raised = self.watch.raises
        leaving = [*early, *((one.state, one.taint) for one in raised)]
        before = normal
        why = symbol((place, "leaves"), union(*(taint for _, taint in leaving)))
        for state, _ in leaving:
            before = join(state, before, why)
        if before is None:
            before = self.watch.states[0]
        frame.state = before.copy()
        final()
        after = self.now()
        if after is None:
            return
        for state, _ in leaving:
            _carry(before, after, state)
        frame.state = normal
        if normal is not None and normal is not before:
            normal = normal.copy()
            _carry(before, after, normal)
            frame.state = normal
        elif normal is not None:
            frame.state = after
        for one in raised:
            frame.hand_on(one)


def _carry(before: State, after: State, state: State) -> None:
    """Give a state what has changed between two others."""
    for name, value in after.variables.items():
        if before.variables.get(name) is not value:
            state.variables[name] = value
    for object_id, fields in before.heap.differing(after.heap):
        state.heap[object_id] = fields
