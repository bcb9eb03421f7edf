"""``save_checkpoint`` and ``start_checkpoint``: what users call; ``phases`` says what happens."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spmdguard.checkpoint.agreeing import SAVE, Partners
from spmdguard.checkpoint.phases import Save
from spmdguard.group.world import world
from spmdguard.meeting import check_may_meet
from spmdguard.phases import SAVE as SAVE_PHASE
from spmdguard.phases import phase


def save_checkpoint(
    directory: str | os.PathLike[str],
    *,
    step: int,
    save_state: Callable[[Path], Any],
    write_metadata: Callable[[Path], Any] | None = None,
    keep_last: int | None = None,
    keep_every: int | None = None,
    group: Any = None,
    checksum: bool = False,
) -> Path | None:
    """Save a checkpoint so that a failure or kill at any instant loses none that was complete before.

    ``save_state(path)`` writes into a fresh folder on every rank, for example with
    ``torch.distributed.checkpoint.save(state, checkpoint_id=path)``, ``torch.save`` in ``@rank_local`` work,
    or ``engine.save_checkpoint(path)``. The folder gets its name, ``step-00000100``, when it is complete and
    durable. A failure of the main rank's part (no directory, full disk) is deferred: every rank returns None,
    and the next ``sync_should_stop()`` is true on every rank.

    SPMD:
        Collective: an exchange of texts, two or (on several hosts) three int32 all_reduces, and what
            ``save_state`` does.
        Called by: every rank of ``group``, with the same ``step``, in the same order.
        Result: rank-invariant.
        Raises on: the ranks on which ``save_state`` raises, at once; every rank alike where steps differ.

    Args:
        directory: where checkpoints live; on a file system that all ranks share. The main rank's counts.
        step: the number of the checkpoint. Saving a step again replaces its checkpoint.
        save_state: called on every rank with the folder to write into; a future that it returns is awaited.
        write_metadata: called on the main rank with the same folder after all ranks have saved.
        keep_last: how many checkpoints with the highest steps to keep; None keeps all.
        keep_every: with ``keep_last``, keep also every step that this number divides.
        group: the process group; None is the default group. Its first rank is the main one.
        checksum: record a SHA-256 of every file, which ``latest_checkpoint(checksum=True)`` verifies.

    Returns:
        The checkpoint, or None where it was not saved on any rank.

    Raises:
        ValueError: an argument is out of range, or ranks came with different steps.
        CommunicationBroken: an earlier collective failed on this rank.
        RanksMissing: some ranks never came.
    """
    return start_checkpoint(
        directory,
        step=step,
        save_state=save_state,
        write_metadata=write_metadata,
        keep_last=keep_last,
        keep_every=keep_every,
        group=group,
        checksum=checksum,
    ).finish()


def start_checkpoint(
    directory: str | os.PathLike[str],
    *,
    step: int,
    save_state: Callable[[Path], Any],
    write_metadata: Callable[[Path], Any] | None = None,
    keep_last: int | None = None,
    keep_every: int | None = None,
    group: Any = None,
    checksum: bool = False,
) -> PendingCheckpoint:
    """Begin a checkpoint that is written in the background; ``finish`` of the result makes it complete.

    For ``save_state=lambda path: torch.distributed.checkpoint.async_save(state, checkpoint_id=path,
    process_group=gloo_group)``: training goes on while it writes. Finish it before the next checkpoint and
    before the run ends; one that is never finished is never taken for complete, and the next run deletes it.
    The background must not use a group in which training communicates: give it one of its own.

    SPMD:
        Collective: an exchange of texts, on several hosts an int32 all_reduce, and what ``save_state`` does.
        Called by: every rank of ``group``, with the same ``step``, in the same order.
        Result: rank-invariant, but for what it holds.
        Raises on: as ``save_checkpoint``.

    Args: as ``save_checkpoint``.

    Returns:
        The checkpoint under way.

    Raises: as ``save_checkpoint``.
    """
    check_arguments(step, save_state, write_metadata, keep_last, keep_every)
    check_may_meet(SAVE, group)
    save = Save(
        Path(os.path.abspath(directory)),  # noqa: PTH100 - resolve() would follow links
        step,
        Partners(world().channel(group)),
        write_metadata=write_metadata,
        keep_last=keep_last,
        keep_every=keep_every,
        checksum=checksum,
    )
    going_on = False
    try:
        with phase(SAVE_PHASE):
            if save.prepare():
                save.begin_state(save_state)
                going_on = True
    finally:
        if not going_on:
            save.forget()
    return PendingCheckpoint(save if going_on else None, group)


class PendingCheckpoint:
    """A checkpoint that ``start_checkpoint`` began.

    SPMD:
        Collective: see ``finish``.
        Called by: every rank.
        Result: none.
        Raises on: see ``finish``.
    """

    def __init__(self, save: Save | None, group: Any) -> None:
        self._save = save
        self._group = group
        self._result: Path | None = None

    def finish(self) -> Path | None:
        """Wait for the background on every rank, then publish the checkpoint.

        SPMD:
            Collective: two int32 all_reduces.
            Called by: every rank of the group, in the same order; again it only repeats its result.
            Result: rank-invariant.
            Raises on: the ranks on which the background failed, at once.

        Returns:
            The checkpoint, or None where it was not saved on any rank.
        """
        if self._save is None:
            return self._result
        check_may_meet(SAVE, self._group)
        save, self._save = self._save, None
        try:
            with phase(SAVE_PHASE):
                if save.finish_state():
                    self._result = save.publish()
        finally:
            save.forget()
        return self._result


def check_arguments(
    step: int,
    save_state: Callable[[Path], Any],
    write_metadata: Callable[[Path], Any] | None,
    keep_last: int | None,
    keep_every: int | None,
) -> None:
    """Raise for an argument that cannot be right, before any rank waits for another."""
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < 10**18:
        raise ValueError(f"step must be an int of at least 0, got {step!r}")
    if not callable(save_state):
        raise TypeError(f"save_state must be callable, got {save_state!r}; pass the function, not its result")
    if write_metadata is not None and not callable(write_metadata):
        raise TypeError(f"write_metadata must be callable, got {write_metadata!r}")
    for name, value in (("keep_last", keep_last), ("keep_every", keep_every)):
        if value is not None and not (isinstance(value, int) and value >= 1):
            raise ValueError(f"{name} must be an int of at least 1, got {value!r}")
    if keep_every is not None and keep_last is None:
        raise ValueError(
            f"keep_every={keep_every!r} needs keep_last: it names what to keep besides the last ones"
        )
