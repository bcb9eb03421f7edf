"""The abstract machine: runs functions on symbolic values and yields their trace trees.

Terminology: a *root* is a function (or module body) that is interpreted on its own, with symbolic
parameters; functions called from it are followed in context, with the arguments they get. Method: big-step
abstract interpretation; loops to a fixpoint (at most ``MAX_ROUNDS`` rounds), calls inlined to ``MAX_DEPTH``
and a step budget per root, recursion cut at the second entry. Cost: linear in the interpreted statements.

Invariant: nothing of the linted code is imported or run.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..facts import lookup as facts
from ..names.reach import Reach
from ..names.symbols import Symbol
from ..source.unparsing import unparse
from ..source.walking import walk
from ..traces.nodes import Tree
from ..values.value import NONE, Place, Taint, Taints, Value, constant
from .frame import Frame
from .heap import Heap
from .memo import CallMemo
from .objects import ObjectTable
from .signals import installs_handler
from .state import State

if TYPE_CHECKING:
    from ..names.classes import ClassInfo
    from ..names.functions import FunctionInfo
    from ..names.modules import Module
    from ..names.project import Project
    from .callbacks import Added
    from .partly import Partly
    from .queues import Changes

MAX_DEPTH = 9
FOLLOW_BUDGET = 4_000
FOLLOW_LEAST = 250
FOLLOW_TOTAL = 120_000
OWN_BUDGET = 20_000
_BY_NAME = re.compile(r"\bsetattr\([^,()]+,\s*[A-Za-z_][\w.]*\s*,")  # f"layer{i}" is a further field
ROOM = 8  # what is left for a call is rounded down to a multiple, so that calls cut short are often alike


class BudgetExceeded(Exception):
    """The step budget of a root was used up; what is known so far is kept."""


class Effort(NamedTuple):
    """What could be spent on following when a call began, what the call got, and whether something was left out."""

    left: int
    room: int
    truncated: bool


class Repeated(NamedTuple):
    """``[x] * n`` as it was made: the fields of the list, and the list as a value that can be evaluated."""

    fields: dict[str, Value]
    made: Value
    times: Value


class FollowExceeded(Exception):
    """What may be followed from one root is used up; the calls under way end as opaque ones."""


class Machine:
    """Interprets one root at a time; shares the object table and resolved names across roots."""

    def __init__(self, project: Project, settings: Any = None) -> None:
        self.project = project
        self.configured_names = [
            (kind, name) for kind, attribute in CONFIGURED for name in getattr(settings, attribute, ())
        ]
        self.objects = ObjectTable()
        self.reach = Reach(project, only_added=False)
        self.reach.add(project.relevant_modules())
        self.steps_left = OWN_BUDGET
        self.follow_budget = FOLLOW_BUDGET
        self.follow_left = FOLLOW_BUDGET
        self.stack: list[FunctionInfo] = []
        self.calls = CallMemo()
        self.exceeded = False
        self.truncated = False
        self.global_cache: dict[tuple[str, str], Value] = {}
        self.global_active: set[tuple[str, str]] = set()
        self.resolved: dict[tuple[str, str], Symbol] = {}
        self.vouched: dict[str, bool] = {}
        self.hooks_asked = 0  # how often the hooks around decided about something
        self.told_patterns: dict[str, bool] = {}
        self.templates: dict[int, dict[str, Value]] = {}
        self.queues: dict[tuple[int, str], Taints] = {}
        self.changes: dict[FunctionInfo, Changes] = {}  # of containers in fields, by method
        self.template_heap = Heap()
        self.template_active: set[int] = set()
        self.followed: set[int] = set()
        self.num_frames = 0
        self.made_by_rule: dict[Hashable, tuple[dict[str, Value], tuple[Value, ...]]] = {}
        self.partly: dict[tuple[int, str], Partly] = {}  # attributes that some ranks lack, by class
        self.decided: set[Place] = set()  # branches that the arguments of some call decide
        self.following: dict[int, bool] = {}
        self.stored: dict[int, tuple[ast.AST, frozenset[str]]] = {}
        self.handlers: dict[int, frozenset[str]] = {}
        self.changed_names: dict[int, tuple[str, ...]] = {}  # of objects that functions change, by module
        self.wrapping: dict[int, bool] = {}
        self.made_in: dict[Hashable, Place | None] = {}  # the call in which an object was made first
        self.begun: set[Place] = set()  # of operations that have been begun only
        # what collectives were given, by what they wrote
        self.failed: dict[Hashable, Taints] = {}
        self.carried: dict[Hashable, frozenset[Hashable]] = {}
        # the keys of what a broadcast was given and of what it wrote, by its place
        self.broadcast: dict[Place, tuple[frozenset[Hashable], Hashable]] = {}
        self.sent: dict[int, tuple[Value, frozenset[Place]]] = {}  # buffers that they read, by identity
        self.appended: dict[Hashable, dict[tuple[Place, str], Added]] = {}  # to lists, by the list and where
        self.lazy: dict[int, FunctionInfo] = {}  # what generator expressions and ``map`` stand for, by node
        self.kept: dict[Hashable, str] = {}  # generators whose exceptions are kept, by key
        self.records: dict[str, ClassInfo] = {}  # the classes of plain records, by name
        self.repeated: dict[Hashable, Repeated] = {}
        self.gathered: dict[Hashable, Hashable] = {}  # how long one rank's share is, by what was gathered
        self.own_groups: dict[Hashable, Value] = {}  # of wrapped modules and what they compute, by key
        self.told: set[object] = set()
        self.contents_only: set[Place] = set()  # of reasons that say nothing about sizes
        self.listings: set[Place] = set()  # where folders are listed
        self.summed: dict[int, Taint] = {}  # lengths that ranks have summed up, by key
        self.model_parts: dict[Hashable, Place] = {}  # items of ``model.parameters()`` and the like, by key
        self.enums: dict[str, ClassInfo] = {}
        self.in_handlers: dict[Place, Tree] = {}  # by where a signal handler is installed
        self.seed_taints: dict[str, Any] = {}
        self.module_frame: Frame | None = None

    def worth_following(self, info: FunctionInfo) -> bool:
        """Whether a call of this function is interpreted; very long ones without communication are not."""
        known = self.following.get(id(info))
        if known is None:
            known = self.following[id(info)] = self._pays(info)
        return known

    def stored_names(self, node: ast.AST) -> frozenset[str]:
        """The names that a function or a loop binds or deletes."""
        known = self.stored.get(id(node))
        if known is None:
            names = (child for child in walk(node) if isinstance(child, ast.Name))
            stored = frozenset(child.id for child in names if not isinstance(child.ctx, ast.Load))
            known = self.stored[id(node)] = (node, stored)  # with the node, whose number no other then has
        return known[1]

    def _pays(self, info: FunctionInfo) -> bool:
        length = lines_of(info)
        if length <= SHORT:
            return True
        if length <= LONG and (
            makes_function(info) or self.reach.is_rank_helper(info) or self.sets_by_name(info)
        ):
            return True
        return self.reach.reaches(info)

    def sets_by_name(self, info: FunctionInfo) -> bool:
        """Whether a function sets attributes whose names it is handed."""
        return self.reach.mentions(info, "setattr(") and _BY_NAME.search(info.text) is not None

    def worth_a_root(self, info: FunctionInfo) -> bool:
        """Whether a function is read on its own: it reaches a collective, tells of ranks, or is a hook."""
        if info.cls is not None:
            bases = info.cls.external_bases()
            if bases and facts.hook_parameters(bases, info.name) is not None:
                return True
        if any(_LIMITING.search(unparse(decorator)) for decorator in info.decorators):
            return True
        return self.reach.reaches(info) or self.reach.is_rank_helper(info) or installs_handler(info)

    def configured_function(self, info: FunctionInfo) -> str | None:
        """What the configuration says of a project function."""
        return self.configured_name(info.full_name) if self.configured_names else None

    def configured_name(self, qualname: str) -> str | None:
        """The configuration list that names a function, or None."""
        for kind, name in self.configured_names:
            if qualname == name or qualname.endswith("." + name):
                return kind
        return None

    def configured(self, value: Value) -> str | None:
        """The same, of a function value."""
        if value.tag == "func":
            return self.configured_function(value.data[0])
        return self.configured_name(value.data[0]) if value.tag == "ext" else None

    @property
    def hooks(self) -> frozenset[str]:
        """The hooks that are being read of those in which some attribute communicates."""
        return facts.DECIDING_HOOKS.intersection(info.name for info in self.stack)

    def within(self, hooks: frozenset[str]) -> bool:
        """Whether one of these hooks is being read."""
        self.hooks_asked += 1
        return bool(hooks & self.hooks)

    def text_says(self, pattern: str) -> bool:
        """Whether a pattern stands in the text of some file of the project."""
        known = self.told_patterns.get(pattern)
        if known is None:
            search = re.compile(pattern.encode()).search
            modules = self.project.relevant_modules()
            known = self.told_patterns[pattern] = any(search(m.source.content) for m in modules)
        return known

    def says(self, module: Module, row: int, word: str) -> bool:
        """Whether the user says ``# spmdguard: uniform`` of an assignment, or ``protocol`` of a branch."""
        vouched = self.vouched.get(module.filename)
        if vouched is None:
            vouched = self.vouched[module.filename] = module.contains(b"spmdguard:")
        return vouched and module.source.comments.says(row, word)

    def is_signal_handler(self, cls: Any, name: str) -> bool:
        """Whether a method is registered as a signal handler somewhere in its class."""
        known = self.handlers.get(id(cls))
        if known is None:
            from .signals import handler_names

            functions = cls.functions if cls.module.contains(b"signal") else ()
            installing = (method for method in functions if "signal" in method.text)
            names = (name for method in installing for name in handler_names(method.node))
            known = self.handlers[id(cls)] = frozenset(names)
        return name in known

    def nearby_method(self, frame: Frame, receiver: Value, node: ast.Call) -> FunctionInfo | None:
        """The one class of this module that a method call on an unknown receiver can mean."""
        from .nearby import find_nearby

        return find_nearby(self, frame, receiver, node)

    def next_serial(self) -> int:
        """A number for a new frame."""
        self.num_frames += 1
        return self.num_frames

    def enter(self, info: FunctionInfo) -> None:
        """A call of a function is followed from now on; its own recursion makes it no other function's callee."""
        if self.stack[:1] != [info]:
            self.followed.add(id(info))
        self.stack.append(info)

    def step(self, count: int = 1) -> None:
        self.steps_left -= count
        if len(self.stack) > 1:
            self.follow_left -= count
            if self.follow_left < -self.follow_budget:
                raise FollowExceeded
        if self.steps_left < 0:
            self.exceeded = True
            raise BudgetExceeded

    @property
    def room(self) -> int:
        """What may still be followed from a call that begins here."""
        return self.follow_left // ROOM * ROOM

    def begin_call(self) -> Effort:
        """A call is about to be followed."""
        effort = Effort(self.follow_left, self.room, self.truncated)
        self.follow_left = effort.room
        self.truncated = False
        return effort

    def end_call(self, effort: Effort) -> bool:
        """A call has been followed; whether to its very end, with all that it calls."""
        whole = not self.truncated
        self.follow_left += effort.left - effort.room
        self.truncated = self.truncated or effort.truncated
        return whole

    def share_budget(self, num_roots: int) -> None:
        """Follow calls deeply in a small project, less deeply from each of many roots."""
        self.follow_budget = max(FOLLOW_LEAST, min(FOLLOW_BUDGET, FOLLOW_TOTAL // max(1, num_roots)))

    def begin_root(self, statements: int = 0) -> None:
        self.steps_left = OWN_BUDGET + 30 * statements
        self.follow_left = self.follow_budget
        self.stack = []
        self.exceeded = False
        self.truncated = False
        self.seed_taints = {}

    def resolve(self, module: Module, dotted: str) -> Symbol:
        key = (module.filename, dotted)
        found = self.resolved.get(key)
        if found is None:
            found = self.resolved[key] = self.project.resolve(module, dotted)
        return found

    def run_module(self, module: Module) -> Tree:
        """Interpret a module's top level."""
        from .statements import execute_block

        self.begin_root(module.source.content.count(b"\n"))
        frame = Frame(self, module, None, State({"__name__": constant("__main__")}, self.first_heap()), 0)
        self.module_frame = frame
        with frame.collecting() as out:
            try:
                execute_block(frame, module.outline.body)
            except FollowExceeded:
                self.truncated = True
            except (BudgetExceeded, RecursionError):
                self.exceeded = True
            finally:
                self.module_frame = None
        return out

    def run_function(self, function: FunctionInfo) -> Tree:
        """Interpret a function on symbolic parameters."""
        from .statements import execute_block

        self.begin_root(lines_of(function))
        frame = self.root_frame(function)
        self.stack.append(function)
        with frame.collecting() as out:
            try:
                execute_block(frame, function.body)
                finish_hook(frame, function)
            except FollowExceeded:
                self.truncated = True
            except (BudgetExceeded, RecursionError):
                self.exceeded = True
            finally:
                self.stack.clear()
        return out

    def as_decorated(self, function: FunctionInfo, tree: Tree) -> Tree:
        """The tree of a root for which nothing in sight calls the function through its decorators."""
        from .hooks import on_its_ranks

        self.begin_root()
        try:
            return on_its_ranks(self.root_frame(function), function, tree)
        except (BudgetExceeded, FollowExceeded, RecursionError):
            return tree

    def run_pair(self, enter: FunctionInfo, leave: FunctionInfo) -> Tree:
        """Interpret ``__enter__`` and then ``__exit__`` of one object, as a with statement would."""
        from .following import inline_call
        from .parameters import symbolic_self

        self.begin_root()
        state = State({}, self.template_heap.copy())
        state.heap.update(self.first_values)
        frame = Frame(self, enter.module, None, state, 0)
        receiver = symbolic_self(frame, enter.cls) if enter.cls else NONE
        with frame.collecting() as out:
            try:
                inline_call(frame, enter, receiver, [], {}, enter.node)
                inline_call(frame, leave, receiver, [NONE, NONE, NONE], {}, leave.node)
            except FollowExceeded:
                self.truncated = True
            except (BudgetExceeded, RecursionError):
                self.exceeded = True
        return out

    @functools.cached_property
    def first_values(self) -> dict[Hashable, dict[str, Value]]:
        """What the bodies of classes say of fields that the program assigns."""
        from .class_fields import first_values

        return first_values(self)

    def first_heap(self) -> Heap:
        """The heap at the beginning of a root."""
        heap = Heap()
        heap.update(self.first_values)
        return heap

    def root_frame(self, function: FunctionInfo) -> Frame:
        from .parameters import bind_symbolic
        from .shared import put_shared

        frame = Frame(self, function.module, function, State({}, self.first_heap()), 0)
        put_shared(frame)
        if function.parent is not None:
            frame.enclosing = self.enclosing_frame(function.parent)
        bind_symbolic(frame, function)
        return frame

    def enclosing_frame(self, function: FunctionInfo) -> Frame:
        """A frame for the closure variables of a nested function: the parent's simple definitions, symbolic."""
        from .closures import closure_frame

        return closure_frame(self, function)


CONFIGURED = (
    ("collectives", "collectives"),
    ("rank-sources", "rank_sources"),
    ("uniform-functions", "uniform_functions"),
    ("rank-local", "rank_local"),
)
_LIMITING = re.compile(r"rank|main_process|master")
SHORT = 14
TELLING = 30
LONG = 80


def makes_function(info: FunctionInfo) -> bool:
    """Whether a function ends by returning one that it has defined: a decorator that takes options, say.

    It communicates nothing itself; what its function is given later may.
    """
    last = info.body[-1] if info.nested_functions and info.body else None
    value = last.value if isinstance(last, ast.Return) else None
    return isinstance(value, ast.Name) and value.id in info.nested_functions


def lines_of(info: FunctionInfo) -> int:
    """How long a function is."""
    return (getattr(info.header, "end_lineno", 0) or 0) - getattr(info.header, "lineno", 0)


def finish_hook(frame: Frame, function: FunctionInfo) -> None:
    """Framework hooks whose normal return implies a collective."""
    from .hooks import after_root

    after_root(frame, function)


def statement_count(body: Sequence[ast.stmt]) -> int:
    return len(body)
