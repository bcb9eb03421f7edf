"""Lengths on which the ranks of one operation must agree: lists of objects, and rows that ranks send one another.

Terminology: the *splits* of an exchange say for each rank how many rows are expected from it (the output's) and how
many are sent to it (the input's). What rank 0 sends to rank 1 is what rank 1 expects from rank 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..interpreter.gathered import SHORT
from ..model import Certainty
from ..values.evaluate import Valuation, evaluate
from .support_trees import WORLDS, Path, reaching

if TYPE_CHECKING:
    from ..traces.nodes import Op
    from ..values.value import Value

OBJECTS = "give every rank a list of the same length, `[None] * n` where it receives"
SPLITS = "exchange the counts first (`all_to_all_single` of the counts), and expect what the others send"


class Disagreement(NamedTuple):
    """What ranks disagree on, in words, with the value that says so and what to do."""

    message: str
    help: str
    certainty: Certainty
    value: Value


def disagreement(op: Op, path: Path) -> Disagreement | None:
    """Lengths that differ between the ranks that make a call."""
    if len(op.sizes) == 1 and op.sizes[0].tag == "expr" and op.sizes[0].data[0] == SHORT:
        message = f"one rank gives `{op.text}` an entry for each of all ranks' items, and the others one for each own"
        return Disagreement(message, OBJECTS, "likely", op.sizes[0])
    if len(op.sizes) == 1:
        return _other_lengths(op, op.sizes[0], path)
    return _other_splits(op, *op.sizes, path) if len(op.sizes) == 2 else None


def _numbers(value: Value, path: Path, world: int, local: int) -> dict[int, Any]:
    """What a value is on each rank that comes to the end of a path."""
    ranks = (Valuation(rank, world, local) for rank in range(world))
    return {at.rank: evaluate(value, at) for at in ranks if reaching(path, at)}


def _other_lengths(op: Op, count: Value, path: Path) -> Disagreement | None:
    for world, local in WORLDS:
        known = {r: n for r, n in _numbers(count, path, world, local).items() if isinstance(n, int)}
        if not known:
            continue
        first = min(known)
        other = next((rank for rank in known if known[rank] != known[first]), None)
        if other is not None:
            message = f"rank {first} gives {known[first]} objects to `{op.text}`, and rank {other} gives {known[other]}"
            return Disagreement(message, OBJECTS, "definite", count)
    return None


def _other_splits(op: Op, expected: Value, sent: Value, path: Path) -> Disagreement | None:
    for world, local in WORLDS:
        outputs, inputs = (_numbers(value, path, world, local) for value in (expected, sent))
        for sender, rows in inputs.items():
            for receiver, wanted in outputs.items():
                if not (_is_split(rows, world) and _is_split(wanted, world)):
                    continue
                if rows[receiver] != wanted[sender]:
                    message = (
                        f"with {world} ranks, rank {sender} sends {rows[receiver]} rows to rank {receiver} in "
                        f"`{op.text}`, which expects {wanted[sender]}"
                    )
                    return Disagreement(message, SPLITS, "definite", sent)
    own = any(t.kind in ("data", "random") and t.certainty != "possible" for t in sent.taint)
    if own and expected.key == sent.key and not (sent.tag == "expr" and sent.data[0] == "repeat"):
        message = (
            f"`{op.text}` expects from each rank as many rows as this rank's own data makes it send there"
        )
        return Disagreement(message, SPLITS, "likely", sent)
    return None


def _is_split(value: Any, world: int) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == world and all(isinstance(n, int) for n in value)
