"""Walk a trace tree in execution order, path by path: what has happened before, and what comes after.

A ``Walk`` moves a set of paths through a tree; a rule overrides ``visit`` (what a node does to its state) and
``choose`` (what an arm does). With a rank given, conditions on the rank are decided, so that correlated
branches agree.

Approximations: a for loop runs at least once; facts made in a loop's round are forgotten at its end; too many
paths lose their facts. A handler is entered from every state that its body passed through.
Cost: linear in nodes times paths, bounded by ``MAX_STEPS``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..values.evaluate import Valuation, rank_dependent, truth
from ..values.value import Value, symbol
from .catching import catches
from .nodes import APART, Branch, Call, Event, Fallible, Jump, Loop, Node, Op, Region, Tree, Try, Yielded
from .paths import (
    MAX_PATHS,
    NO_FACTS,
    NOWHERE,
    Flow,
    Path,
    Paths,
    add,
    assumed,
    catches_all,
    count_breaks,
    left_by_jumps,
    limited,
    marked,
)
from .terms import TooLarge
from .where import Where

MAX_STEPS = 60_000


class Walk:
    """Moves paths through a tree; override ``visit`` and ``choose``."""

    def __init__(self, *, rank: int | None = None, world: int = 2, local: int = 2) -> None:
        self.rank = rank
        self.world = world
        self.local = local
        self.left = MAX_STEPS
        self.tries: list[set[tuple[Path, str]]] = []
        self.passed_by: set[Node] = set()

    def visit(self, node: Op | Event | Fallible, state: Hashable, where: Where | None) -> Hashable:
        """The state after an operation, event or fallible call."""
        return state

    def choose(self, node: Branch, holds: bool, state: Hashable, where: Where | None) -> Hashable:
        """The state at the start of an arm; None where the rule knows that no path leads there."""
        return state

    def jump(self, node: Jump, state: Hashable, where: Where | None) -> Hashable:
        """The state with which a jump is made."""
        return state

    def back(self, node: Loop, state: Hashable, where: Where | None) -> Hashable:
        """The state at the start of another round of a loop."""
        return state

    def enter(self, node: Call, state: Hashable, where: Where | None) -> Hashable:
        """The state at the start of a followed call."""
        return state

    def leave(self, node: Region, state: Hashable, where: Where | None) -> Hashable:
        """The state at the end of a region that is not deferred."""
        return state

    def run(self, tree: Tree, state: Hashable) -> Flow:
        """Walk a root's tree; gives the paths by the way they leave it."""
        try:
            return self.tree(tree, frozenset({Path(state)}), None)
        except TooLarge:
            return {}

    def tree(self, nodes: Tree, paths: Paths, where: Where | None) -> Flow:
        """Walk nodes in order."""
        flow: Flow = {}
        for node in nodes:
            if not paths:
                break
            if node in self.passed_by:
                continue
            self.left -= len(paths)
            if self.left < 0:
                raise TooLarge
            step = self._node(node, paths, where)
            paths = step.pop("fall", NOWHERE)
            add(flow, step)
        if paths:
            add(flow, {"fall": paths})
        return flow

    def _node(self, node: Node, paths: Paths, where: Where | None) -> Flow:
        if isinstance(node, (Op, Event, Fallible)):
            if self.tries and not isinstance(node, Event):
                self.tries[-1].update((path, "") for path in paths)
            return {"fall": self._moved(paths, lambda s: self.visit(node, s, where))}
        if isinstance(node, Branch):
            return self._branch(node, paths, where)
        if isinstance(node, Jump):
            return self._jump(node, paths, where)
        if isinstance(node, Call):
            return self._call(node, paths, where)
        if isinstance(node, Loop):
            return self._loop(node, paths, where)
        if isinstance(node, Try):
            return self._try(node, paths, where)
        if isinstance(node, Region):
            return self._region(node, paths, where)
        if isinstance(node, Yielded):
            return self._yielded(node, paths, where)
        return {"fall": paths}

    def _moved(self, paths: Paths, change: Callable[[Hashable], Hashable]) -> Paths:
        """The paths with changed states, without those whose state is None; most nodes change none."""
        moved: list[Path] = []
        changed = len(paths) > MAX_PATHS
        for path in paths:
            state = change(path.state)
            if state is path.state and state is not None:
                moved.append(path)
                continue
            changed = True
            if state is not None:
                moved.append(Path(state, path.facts))
        return limited(moved) if changed else paths

    def known(self, condition: Value, path: Path) -> bool | None:
        """Whether a condition holds on a path; None when it may or may not."""
        if self.rank is None and rank_dependent(condition):
            return dict(path.facts).get(condition.key)
        at = Valuation(self.rank or 0, self.world, self.local, dict(path.facts))
        try:
            return truth(condition, at)
        except TypeError:
            return None

    def _branch(self, node: Branch, paths: Paths, where: Where | None) -> Flow:
        arms: list[tuple[bool, list[Path]]] = [(True, []), (False, [])]
        split = False
        for path in paths:
            known = self.known(node.condition, path)
            split = split or known is None
            for holds, chosen in arms:
                if known is not None and known is not holds:
                    continue
                state = self.choose(node, holds, path.state, where)
                if state is not None:
                    chosen.append(
                        Path(
                            state,
                            path.facts if known is holds else assumed(path.facts, node.condition, holds),
                        )
                    )
        results = [
            self.tree(
                node.then if holds else node.orelse,
                limited(chosen),
                Where(node, "then" if holds else "else", where),
            )
            for holds, chosen in arms
        ]
        if split and all(set(result) <= {"fall"} for result in results):
            plain = [frozenset(p.state for p in result.get("fall", NOWHERE)) for result in results]
            before = frozenset(p.state for p in paths)
            if plain[0] == plain[1] == before:
                return {"fall": paths}
        flow: Flow = {}
        for result in results:
            add(flow, result)
        return flow

    def _jump(self, node: Jump, paths: Paths, where: Where | None) -> Flow:
        paths = self._moved(paths, lambda s: self.jump(node, s, where))
        if node.kind in ("raise", "exit", "assert"):
            name = node.exception or ("SystemExit" if node.kind == "exit" else "")
            if self.tries:
                self.tries[-1].update((path, name or "?") for path in paths)
                return {}
            return {"raise": paths}
        kinds = {"return": "ret", "break": "brk", "continue": "cont", "end": "end"}
        return {kinds[node.kind]: paths}

    def _call(self, node: Call, paths: Paths, where: Where | None) -> Flow:
        paths = self._moved(paths, lambda s: self.enter(node, s, where))
        flow = self.tree(node.body, paths, Where(node, "body", where))
        result: Flow = {}
        for kind, leaving in flow.items():
            if kind in ("ret", "brk", "cont", "end") or (kind == "y-brk" and node.mode == "generator"):
                kind = "fall"
            elif kind.startswith("y-"):
                kind = kind[2:]
            add(result, {kind: leaving})
        if node.mode == "manager" and "fall" in result:
            add(result, left_by_jumps(node.place, result.pop("fall")))
        return result

    def _yielded(self, node: Yielded, paths: Paths, where: Where | None) -> Flow:
        flow = self.tree(node.body, paths, Where(node, "body", where))
        result: Flow = {}
        for kind, leaving in flow.items():
            if kind == "cont" and node.form == "for":
                kind = "fall"
            elif node.form == "with" and kind in ("ret", "brk", "cont"):
                leaving = marked(node.place, kind, leaving)  # the manager goes on after its yield
                kind = "fall"
            elif kind not in ("fall", "raise"):
                kind = "y-" + kind
            add(result, {kind: leaving})
        return result

    def _region(self, node: Region, paths: Paths, where: Where | None) -> Flow:
        if node.kind in APART:
            return {"fall": paths}
        if node.kind != "deferred":
            inner = self.tree(node.body, paths, Where(node, "body", where))
            if "fall" in inner:
                inner["fall"] = self._moved(inner["fall"], lambda s: self.leave(node, s, where))
            return inner
        self.tries.append(set())
        flow = self.tree(node.body, paths, Where(node, "body", where))
        raised = self.tries.pop()
        add(flow, {"fall": limited(path for path, _ in raised)})
        return flow

    def _loop(self, node: Loop, paths: Paths, where: Where | None) -> Flow:
        inside = Where(node, "body", where)
        flow: Flow = {}
        ended: Paths = NOWHERE
        heads: Paths = NOWHERE
        coming = paths
        entry = frozenset.intersection(*(p.facts for p in paths)) if paths else NO_FACTS
        while not coming <= heads:
            coming = coming - heads
            heads = heads | coming
            step = self.tree(node.body, coming, inside)
            again = step.pop("fall", NOWHERE) | step.pop("cont", NOWHERE)
            ended = ended | step.pop("end", NOWHERE)
            if node.form != "while":
                ended = ended | again
            add(flow, step)
            after = self._moved(again, lambda s: self.back(node, s, where))
            coming = limited(Path(p.state, p.facts & entry) for p in after)
        if node.form != "while" and not ended and not flow.get("brk"):
            ended = paths
        broken = flow.pop("brk", NOWHERE)
        if broken and count_breaks(node.body) == 1:
            key = symbol((node.place, "break")).key
            broken = frozenset(Path(p.state, p.facts | {(key, True)}) for p in broken)
            ended = frozenset(Path(p.state, p.facts | {(key, False)}) for p in ended)
        if node.orelse:
            step = self.tree(node.orelse, limited(ended), Where(node, "orelse", where))
            ended = step.pop("fall", NOWHERE)
            add(flow, step)
        add(flow, {"fall": broken | ended})
        return flow

    def _try(self, node: Try, paths: Paths, where: Where | None) -> Flow:
        self.tries.append(set())
        flow = self.tree(node.body, paths, Where(node, "body", where))
        raised = self.tries.pop()
        uncaught: set[tuple[Path, str]] = set()
        self.tries.append(uncaught)
        if node.orelse and "fall" in flow:
            step = self.tree(node.orelse, flow.pop("fall"), Where(node, "orelse", where))
            add(flow, step)
        left = raised
        for handler in node.handlers:
            caught = {(p, n) for p, n in left if n in ("", "?") or catches(handler, n)}
            if catches_all(handler):
                left = left - caught
            else:
                left = {(p, n) for p, n in left if (p, n) not in caught or n in ("", "?")}
            step = self.tree(
                handler.body, limited(p for p, _ in caught), Where(node, "handler", where, handler)
            )
            add(flow, step)
        self.tries.pop()
        uncaught |= left
        if node.final:
            flow = self._final(node, flow, where)
            escaping = limited(path for path, _ in uncaught)
            step = self.tree(node.final, escaping, Where(node, "unwinding", where))
            fall = step.pop("fall", NOWHERE)
            add(flow, step)
            uncaught = {(path, "?") for path in fall}
        if uncaught:
            if self.tries:
                self.tries[-1].update(uncaught)
            else:
                add(flow, {"raise": limited(path for path, _ in uncaught)})
        return flow

    def _final(self, node: Try, flow: Flow, where: Where | None) -> Flow:
        result: Flow = {}
        for kind, paths in flow.items():
            part = "unwinding" if kind == "raise" else "final"
            step = self.tree(node.final, paths, Where(node, part, where))
            fall = step.pop("fall", NOWHERE)
            add(step, {kind: fall})
            add(result, step)
        return result
