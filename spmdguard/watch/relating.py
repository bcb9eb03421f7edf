"""How a finding of the linter relates to where ranks stand.

*Stack*: the user's frames of one rank, innermost first. *Shared frames*: those at the outer end that all stacks have
alike; where ranks have parted, a finding on one of them tells nothing, so they are left out.

A finding relates to a frame by its own line, by a line of its trail or counter-example, by the innermost loop, or by
the function, in this order. O(findings x frames).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from spmdguard.watch.standing import Place

OWN_LINE, ON_ITS_WAY, SAME_LOOP, SAME_FUNCTION, UNRELATED = 0, 1, 2, 3, 6
_MAX_BYTES = 2_000_000
_FAR = 1_000_000
_LATE_FAMILIES = ("6", "7", "8", "9")
Row = tuple[str, int]
Range = tuple[int, int]


@dataclass(frozen=True)
class Relation:
    """How near a finding is to the stacks; less is nearer.

    Attributes:
        on_line: whether a rank stands at the finding's own line.
        late: whether its rule is about something else than that ranks part.
        total: the relations to all stacks, added.
        distance: lines to the nearest frame in the same function.
        nearest: the best relation to any stack.
    """

    on_line: bool
    late: bool
    total: int
    distance: int
    nearest: int

    def order(self, sureness: tuple[int, int]) -> tuple[int, ...]:
        """A key that sorts what explains most to the front; one that is only possible must be nearer."""
        doubt = 2 if sureness[0] > 1 else 0
        return (not self.on_line, self.late, self.total + doubt, self.distance, *sureness)


def relate(
    code: str, own: Collection[Row], way: Collection[Row], stacks: Sequence[Sequence[Place]]
) -> Relation | None:
    """The relation of a finding on the lines ``own``, by way of ``way``, to the stacks; None without any."""
    best = [
        min((_to_frame(frame, own, way) for frame in stack), default=(UNRELATED, _FAR)) for stack in stacks
    ]
    nearest = min((kind for kind, _ in best), default=UNRELATED)
    late = code.removeprefix("SPG")[:1] in _LATE_FAMILIES
    if nearest == UNRELATED or (late and nearest > ON_ITS_WAY):
        return None
    distances = [_distance(frame, own) for stack in stacks for frame in stack]
    return Relation(
        nearest == OWN_LINE, late, sum(kind for kind, _ in best), min(distances, default=_FAR), nearest
    )


def without_shared(stacks: Sequence[Sequence[Place]]) -> list[tuple[Place, ...]]:
    """Each different stack once, without the frames that all have in common; the innermost one always stays."""
    known = list(dict.fromkeys(tuple(stack) for stack in stacks if stack))
    if len(known) < 2:
        return known
    shared = 0
    while all(len(stack) > shared for stack in known) and len({stack[-1 - shared] for stack in known}) == 1:
        shared += 1
    return [stack[: max(1, len(stack) - shared)] for stack in known]


def _to_frame(frame: Place, own: Collection[Row], way: Collection[Row]) -> tuple[int, int]:
    name = resolve(frame.file)
    at = (name, frame.line)
    if at in own:
        return OWN_LINE, 0
    if at in way:
        return ON_ITS_WAY, 0
    rows = [row for file, row in own if file == name]
    scopes = _scopes_of(name)
    if not rows or scopes is None or scopes.function_at(rows[0]) != scopes.function_at(frame.line):
        return UNRELATED, _FAR
    loop = scopes.loop_at(frame.line)
    same = loop is not None and loop == scopes.loop_at(rows[0])
    return (SAME_LOOP if same else SAME_FUNCTION), abs(rows[0] - frame.line)


def _distance(frame: Place, own: Collection[Row]) -> int:
    name = resolve(frame.file)
    scopes = _scopes_of(name)
    rows = [row for file, row in own if file == name]
    if scopes is None or not rows or scopes.function_at(rows[0]) != scopes.function_at(frame.line):
        return _FAR
    return min(abs(row - frame.line) for row in rows)


@dataclass(frozen=True)
class _Scopes:
    """The functions and loops of a file, by their first and last lines."""

    functions: tuple[Range, ...]
    loops: tuple[Range, ...]

    def function_at(self, row: int) -> Range | None:
        return _innermost(self.functions, row)

    def loop_at(self, row: int) -> Range | None:
        """The innermost loop of the same function, its first line included."""
        loop, function = _innermost(self.loops, row), self.function_at(row)
        return None if loop is None or (function is not None and loop[0] < function[0]) else loop


def _innermost(ranges: Sequence[Range], row: int) -> Range | None:
    found = [each for each in ranges if each[0] <= row <= each[1]]
    return min(found, key=lambda each: each[1] - each[0], default=None)


@lru_cache(maxsize=32)
def _scopes_of(file: str) -> _Scopes | None:
    """None where the file cannot be read as Python; the program may have changed or removed it."""
    try:
        path = Path(file)
        if path.stat().st_size > _MAX_BYTES:
            return None
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    functions, loops = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((node.lineno, node.end_lineno or node.lineno))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            loops.append((node.lineno, node.end_lineno or node.lineno))
    return _Scopes(tuple(functions), tuple(loops))


def resolve(filename: str) -> str:
    """The absolute path, by which files are the same."""
    try:
        return str(Path(filename).resolve())
    except OSError:
        return filename
