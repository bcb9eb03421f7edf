"""Which functions reach a collective, judged by the calls in their text, on demand.

Terminology: a function *reaches* when its text calls something that is a collective by name, or a function
that reaches. Calls are read with a regular expression, so a call quoted in a string counts; each is followed
by what stands before the last name: nothing or an imported module (resolved), ``self`` (methods of the
class), any other receiver (only where few methods share the name). A *rank helper* is a function whose text
speaks of ranks. The answers merely decide which further files are worth visiting; with ``only_added``,
calls are not followed into modules that were not added. Cost: linear in the text of the functions on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..facts import lookup as facts
from ..source.calls import calls_in
from .bindings import Binding, ImportBinding
from .symbols import ClassSymbol, ExternalSymbol, FunctionSymbol, Symbol

if TYPE_CHECKING:
    from .classes import ClassInfo
    from .functions import FunctionInfo
    from .modules import Module
    from .project import Project

_CALL = re.compile(r"(?<!\w)(\.?)((?:[A-Za-z_]\w*\.)*)([A-Za-z_]\w*)\Z")
_RANK = re.compile(
    r"rank|RANK|PROCID|LOCALID|NODEID|main_process|is_main|is_master|master_process|process_index|process_zero"
    r"|global_zero|ordinal\("
)
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
_MAX_DEFINITIONS = 2
_COMMON_METHODS = frozenset(
    name for kind in (dict, list, set, str, bytes, tuple, int) for name in dir(kind)
) | {
    "read",
    "write",
    "close",
    "open",
    "run",
    "start",
    "stop",
    "step",
    "forward",
    "to",
    "save",
    "load",
    "apply",
}


class Reach:
    """Answers for the functions of ``modules`` (added as they become known) and what they call."""

    def __init__(self, project: Project, *, only_added: bool) -> None:
        self._project = project
        self._only_added = only_added
        self._methods: dict[str, list[FunctionInfo]] = {}
        self._known: dict[FunctionInfo, bool] = {}
        self._helpers: dict[FunctionInfo, bool] = {}
        self._modules: set[Module] = set()
        self.names: set[str] = set()

    def add(self, modules: Iterable[Module]) -> None:
        """Make the functions and classes of more modules known by name."""
        for module in modules:
            self._modules.add(module)
            self.names.update(cls.name for cls in module.all_classes)
            for function in module.all_functions:
                if function.cls is not None:
                    self._methods.setdefault(function.name, []).append(function)
                elif function.parent is None:
                    self.names.add(function.name)

    def reaches(self, start: FunctionInfo) -> bool:
        """Whether ``start`` reaches a collective; remembered for every function on the way."""
        if start in self._known:
            return self._known[start]
        came_from: dict[FunctionInfo, FunctionInfo | None] = {start: None}
        pending = [start]
        while pending:
            function = pending.pop()
            text = function.text
            found = dict.fromkeys(_calls_in(text))
            by_name = self._known.get(function) or self._tells(found)
            calls = () if by_name else tuple(call[1:] for call in found if not call[0])
            if by_name or self._calls_wrapped(function, calls):
                self._mark(function, came_from)
                return True
            for called in self._called(function, text, calls):
                if called is None:
                    self._mark(function, came_from)
                    return True
                if called in came_from or self._known.get(called) is False:
                    continue
                if not self._only_added or called.module in self._modules:
                    came_from[called] = function
                    pending.append(called)
        self._known.update(dict.fromkeys(came_from, False))
        return False

    def _tells(self, calls: Iterable[tuple[str, str, str, str]]) -> bool:
        """Whether one of the calls, or a function that is defined, is a collective by its name.

        The pattern for it has a hundred names: it is put to each call once, not to the whole text.
        """
        forms = "\n".join([f"{unknown}{receiver}{name}(" for _, unknown, receiver, name in calls])
        return self._project.prefilter.collective_calls.search(forms) is not None

    def _mark(self, function: FunctionInfo, came_from: dict[FunctionInfo, FunctionInfo | None]) -> None:
        step: FunctionInfo | None = function
        while step is not None:
            self._known[step] = True
            step = came_from[step]

    def mentions(self, function: FunctionInfo, *pieces: str) -> bool:
        """Whether one of some pieces of text stands in a function."""
        text = function.text
        return any(piece in text for piece in pieces)

    def matches(self, function: FunctionInfo, pattern: re.Pattern[str]) -> bool:
        """Whether a pattern matches somewhere in the text of a function."""
        return pattern.search(function.text) is not None

    def is_rank_helper(self, function: FunctionInfo) -> bool:
        """Whether the text of the function asks for the rank, so that its result may differ between ranks."""
        known = self._helpers.get(function)
        if known is None:
            known = self._helpers[function] = _RANK.search(function.text) is not None
        return known

    def wraps(self, module: Module) -> bool:
        """Whether a module wraps a model, so that a backward pass in it communicates."""
        return bool(module.wrapped_names)

    def _calls_wrapped(self, function: FunctionInfo, calls: Sequence[tuple[str, str, str]]) -> bool:
        """Whether one of the calls is of what the module wraps, or runs a backward pass through it."""
        wrapped = function.module.wrapped_names
        if not wrapped:
            return False
        return any(
            name in wrapped or name == "backward" or receiver.rstrip(".").rpartition(".")[2] in wrapped
            for _, receiver, name in calls
        )

    def _called(
        self, function: FunctionInfo, text: str, calls: Sequence[tuple[str, str, str]]
    ) -> Iterator[FunctionInfo | None]:
        """The functions that the calls in a text may well mean; None for a collective under a name of its own."""
        bindings = function.module.bindings
        imports = function.scope.imports if "import " in text else {}
        for unknown, receiver, name in calls:
            first = receiver.partition(".")[0] or name
            if self._only_added and not unknown and not self._may_lead(bindings, imports, receiver, name):
                continue
            if not unknown and (first in imports or first in bindings or function.module.star_imports):
                symbol = (
                    self._project.resolve_in_function(function, receiver + name)
                    if imports
                    else self._project.resolve(function.module, receiver + name)
                )
                if isinstance(symbol, (FunctionSymbol, ClassSymbol)):
                    yield from run_by_calling(symbol)
                    continue
                if isinstance(symbol, ExternalSymbol) and _communicates(symbol):
                    yield None
            if not unknown and receiver in ("self.", "cls."):
                around = _class_around(function)
                method = around.find_method(name) if around is not None else None
                if method is not None:
                    yield method
            if (unknown or receiver) and name not in _COMMON_METHODS:
                methods = self._methods.get(name, ())
                if len(methods) <= _MAX_DEFINITIONS:
                    yield from methods

    def _may_lead(
        self, bindings: Mapping[str, list[Binding]], imports: Mapping[str, str], receiver: str, name: str
    ) -> bool:
        """Whether a call can mean something of the added modules, or from outside, as the names in it tell.

        To resolve a name of the project parses its file; this keeps the files away that cannot matter.
        """
        if name in self.names or receiver in ("self.", "cls."):
            return True
        first = receiver.partition(".")[0] or name
        found = bindings.get(first, ())
        targets = (
            [imports[first]]
            if first in imports
            else [b.target for b in found if isinstance(b, ImportBinding)]
        )
        if not targets or len(targets) < len(found):
            return not receiver or name in self._methods or bool(found)
        if not all(self._project.is_top_level(target.partition(".")[0]) for target in targets):
            return True
        if receiver:
            return name in self._methods
        return any(target.rpartition(".")[2] in self.names for target in targets)


def run_by_calling(symbol: Symbol) -> Iterator[FunctionInfo]:
    """The functions that run when ``symbol`` is called: itself, or the constructors of the class."""
    if isinstance(symbol, FunctionSymbol):
        yield symbol.info
    elif isinstance(symbol, ClassSymbol):
        for name in _CONSTRUCTORS:
            method = symbol.info.find_method(name)
            if method is not None:
                yield method


def _communicates(symbol: ExternalSymbol) -> bool:
    fact = facts.function(symbol.qualname)
    return fact is not None and bool(fact.op) and fact.kind != "point-to-point"


def _class_around(function: FunctionInfo) -> ClassInfo | None:
    scope: FunctionInfo | None = function
    while scope is not None and scope.cls is None:
        scope = scope.parent
    return scope.cls if scope is not None else None


def _calls_in(text: str) -> Iterator[tuple[str, str, str, str]]:
    """What a text calls or defines: ``"def "`` or nothing, a dot behind what has no name, the receiver, the name."""
    for dotted, is_definition in calls_in(text):
        match = _CALL.search(dotted)
        if match is not None:
            yield "def " if is_definition else "", match[1], match[2], match[3]
