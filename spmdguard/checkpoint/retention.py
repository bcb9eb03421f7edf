"""Which checkpoints go: a pure decision, and carrying it out so that none is ever seen half deleted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spmdguard.checkpoint.files import discard
from spmdguard.checkpoint.manifest import find_problem
from spmdguard.checkpoint.names import Published, list_published


def choose_superseded(
    complete: Sequence[Published], newest: Published, keep_last: int | None, keep_every: int | None
) -> list[Published]:
    """Which of the ``complete`` checkpoints to delete after ``newest`` has been published.

    Earlier checkpoints of the same step go. With ``keep_last`` the highest steps stay, with ``keep_every``
    also every step that it divides. The one just published always stays.
    """
    last_attempts: dict[int, Published] = {}
    for each in sorted(complete):
        last_attempts[each.step] = each
    steps = sorted({*last_attempts, newest.step}, reverse=True)
    kept_steps = set(steps if keep_last is None else steps[:keep_last])
    if keep_every is not None:
        kept_steps.update(step for step in steps if step % keep_every == 0)
    kept = {newest, *(last_attempts[step] for step in kept_steps - {newest.step})}
    return [each for each in complete if each not in kept]


def delete_superseded(
    directory: Path, newest: Published, keep_last: int | None, keep_every: int | None
) -> None:
    """Delete what ``choose_superseded`` says, oldest first; incomplete and foreign folders stay."""
    candidates = [each for each in list_published(directory) if keep_last or each.step == newest.step]
    found = [
        each
        for each in candidates
        if each == newest or find_problem(directory / each.name, each.step) is None
    ]
    for each in sorted(choose_superseded(found, newest, keep_last, keep_every)):
        discard(directory / each.name)
