"""What a production of the grammar knows: visible names, what is allowed here, the program so far.

Terminology: a place is *varying* when only some ranks reach it. A *defect* is an opportunity to let ranks
part ways (a collective or a jump at a varying place); a program is *careful* when its defect rate is 0.
Tags guide the grammar towards programs that look like real ones; only the oracle decides what is a mismatch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.lint.generated.draw import Draw

Lines = list[str]
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Var:
    """A visible expression; ``kind``: rank | world | place | count | flag | tensor | group | rows."""

    text: str
    kind: str
    varies: bool = False
    member: str = ""  # for a group: the condition that holds on its members
    changes: bool = False  # statements may assign to it


@dataclass(frozen=True)
class Helper:
    """A function or method that statements may call."""

    name: str
    params: tuple[Var, ...] = ()
    returns: str = ""
    varies: bool = False  # whether the returned value differs between ranks
    local: bool = False  # performs no collective and lets no exception out
    form: str = "call"  # call | generator | manager | coroutine
    suppresses: bool = False


@dataclass
class Program:
    """The program so far and the drawn limits for the rest."""

    draw: Draw
    full: bool
    defects: int  # percent
    budget: int
    dist: str = "dist"
    in_main: bool = False
    as_module: bool = False  # the job is the body of the module
    helpers: list[Helper] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)  # barrier -> the name it was imported under
    block: Callable[[Scope, int], Lines] = field(repr=False, default=lambda scope, size: [])

    def fresh(self, stem: str) -> str:
        """A name that no other statement uses."""
        self.used[stem] = self.used.get(stem, 0) + 1
        return stem if self.used[stem] == 1 else f"{stem}{self.used[stem]}"


@dataclass
class Scope:
    """What is visible and allowed at one place of the program."""

    program: Program
    names: list[Var]
    collectives: bool = True
    jumps: frozenset[str] = NONE  # return | break | continue | raise, where all ranks come along
    loose: frozenset[str] = NONE  # the same, where only some do
    varying: bool = False
    depth: int = 0
    returns: str = ""
    caught: tuple[str, ...] = ()  # exception types that the innermost handler catches
    outer: Scope | None = None
    settled: bool = False  # names of outer scopes cannot be assigned here (the body of a nested function)
    limits: frozenset[str] = NONE  # names that a while loop around this place counts up to: it has to end

    @property
    def draw(self) -> Draw:
        return self.program.draw

    def inner(
        self,
        *,
        add: tuple[Var, ...] = (),
        jumps: frozenset[str] | None = None,
        loose: frozenset[str] | None = None,
        collectives: bool | None = None,
        caught: tuple[str, ...] | None = None,
    ) -> Scope:
        """A nested block: names defined in it are not seen after it."""
        return replace(
            self,
            names=[*self.names, *add],
            outer=self,
            depth=self.depth + 1,
            jumps=self.jumps if jumps is None else jumps,
            loose=self.loose if loose is None else loose,
            collectives=self.collectives if collectives is None else collectives,
            caught=self.caught if caught is None else caught,
        )

    def arm(self) -> Scope:
        """A block that only some ranks enter: local, unless a defect is drawn."""
        inside = self.inner()
        inside.varying = True
        if not self.defect():
            inside.collectives = False
            inside.jumps = self.loose
        return inside

    def assignable(self) -> list[Var]:
        """The plain names and fields that a statement here may give another value."""
        if self.settled:
            return []
        kinds = ("place", "count", "flag")
        return [v for v in self.names if v.kind in kinds and v.changes and v.text not in self.limits]

    def changed(self, var: Var, varies: bool) -> None:
        """A name has got another value here: it differs between ranks, or it no longer does."""
        scope: Scope | None = self
        now = replace(var, varies=varies or self.varying)
        while scope is not None:
            scope.names = [now if known.text == var.text else known for known in scope.names]
            scope = scope.outer

    def local(self) -> Scope:
        """A block without collectives, whose jumps out of it are those that some ranks may take."""
        return self.inner(collectives=False, jumps=self.loose)

    def defect(self) -> bool:
        return self.program.defects > 0 and self.draw.chance(self.program.defects)

    def of(self, kind: str, varies: bool | None = None) -> list[Var]:
        return [v for v in self.names if v.kind == kind and (varies is None or v.varies == varies)]

    def block(self, size: int) -> Lines:
        return self.program.block(self, size)

    def name(self, op: str) -> str:
        """The expression that calls a function of ``torch.distributed`` here."""
        return self.program.aliases.get(op, f"{self.program.dist}.{op}")


def indent(lines: Lines) -> Lines:
    return ["    " + line for line in lines] or ["    pass"]
