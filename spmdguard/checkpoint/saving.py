"""``save_checkpoint``: four phases, of which only the second may raise on one rank alone.

1. prepare (main rank, deferred): clean up after dead runs, make a folder for this save. The first exchange
   carries its name, or why there is none; then all ranks skip the save together.
2. save (all ranks, raises at once): the user's ``save_state``. An error that it deferred on any rank, for
   example of ``@rank_local(only="main")`` work, makes the save incomplete: all ranks drop it together.
3. publish (main rank, deferred): metadata, manifest, everything durable, then one rename; retention after it.
4. close: the last exchange, which every rank reaches whatever phase 3 did; it carries the verdict.

Invariant: a folder is complete and durable before it gets a checkpoint's name, and nothing with such a name
is deleted before another one is durable.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmdguard.checkpoint import files
from spmdguard.checkpoint.agreeing import SAVE, Partners, attempt, count_deferred
from spmdguard.checkpoint.finding import POINTER
from spmdguard.checkpoint.manifest import write_manifest
from spmdguard.checkpoint.names import Published, list_published, machine, new_saving_name
from spmdguard.checkpoint.retention import delete_superseded
from spmdguard.current import PerProcess
from spmdguard.format import name_ranks
from spmdguard.group.world import world
from spmdguard.latch import latch
from spmdguard.meeting import check_may_meet
from spmdguard.work import CollectiveWork

logger = logging.getLogger("spmdguard")
VISIBLE_TIMEOUT_S = 90.0
"""How long a rank looks for a folder that another one made; NFS may hide it for 60 s."""

_active: PerProcess[set[str]] = PerProcess(set)
_work = CollectiveWork(SAVE)


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
        Collective: an exchange of texts, three int32 all_reduces, and what ``save_state`` does.
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
    check_arguments(step, save_state, write_metadata, keep_last, keep_every)
    check_may_meet(SAVE, group)
    partners = Partners(world().channel(group))
    save = _Save(Path(os.path.abspath(directory)), step, partners)  # noqa: PTH100 - resolve() follows links
    if not save.prepare():
        return None
    try:
        if not save.save_state(save_state):
            return None
        return save.publish(write_metadata, keep_last, keep_every, checksum)
    finally:
        _active().discard(save.saving.name)


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


@dataclass
class _Save:
    """One save: its folder and the ranks that take part."""

    directory: Path
    step: int
    partners: Partners
    saving: Path = Path()
    syncs: bool = False
    """Whether this rank makes durable what its host wrote, because the main rank is on another one."""
    published: Published | None = None

    def prepare(self) -> bool:
        """Phase 1, and the exchange that shares its outcome."""
        partners = self.partners
        failure = attempt(f"{SAVE}: prepare", self._make_folder) if partners.is_main else ""
        latch().num_begun += 1
        own = {"step": self.step, "saving": os.fspath(self.saving), "failure": failure, "host": machine()}
        said = partners.exchange_data(own)
        main = next(iter(said.values()))
        by_step: dict[int, list[int]] = {}
        for rank, each in said.items():
            by_step.setdefault(each["step"], []).append(rank)
        if len(by_step) > 1:
            self._drop()
            seen = ", ".join(f"{name_ranks(ranks)}: {step}" for step, ranks in by_step.items())
            raise ValueError(f"step must be the same on every rank, got {seen}")
        if main["failure"]:
            self._tell({next(iter(said)): main["failure"]})
            return False
        self.saving = Path(main["saving"])
        self.directory = self.saving.parent
        first_of_host = next(rank for rank, each in said.items() if each["host"] == own["host"])
        self.syncs = first_of_host == partners.rank and not partners.is_main
        failures = partners.share_failures("" if partners.is_main else attempt(SAVE, self._find_folder))
        if failures:
            self._drop()
            self._tell(failures)
        return not failures

    def _make_folder(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        files.clean_abandoned(self.directory, _active())
        saving = self.directory / new_saving_name(self.step)
        saving.mkdir()
        self.saving = saving
        _active().add(saving.name)

    def _find_folder(self) -> None:
        """See the folder that the main rank made."""
        if not files.wait_until(lambda: files.look_for(self.saving), VISIBLE_TIMEOUT_S):
            raise FileNotFoundError(
                f"rank {self.partners.rank} does not see {self.saving}, which the main rank made; "
                "the directory must be on a file system that all ranks share"
            )

    def save_state(self, save_state: Callable[[Path], Any]) -> bool:
        """Phase 2, and the exchange that says whether every rank has all its files."""
        deferred_before = count_deferred()
        _work.begin()
        try:
            _work.step(_save_and_wait, save_state, self.saving)
        except BaseException as exc:
            if self.partners.is_main:
                self._put_away()
            _work.fail(exc)
            raise
        failure = ""
        if count_deferred() != deferred_before:
            failure = "an error was deferred while it ran save_state"
        elif self.syncs:
            failure = attempt(f"{SAVE}: sync", lambda: files.sync_tree(self.saving))
        failures = self.partners.share_failures(failure)
        if failures:
            self._drop()
            self._tell(failures)
        return not failures

    def publish(
        self,
        write_metadata: Callable[[Path], Any] | None,
        keep_last: int | None,
        keep_every: int | None,
        checksum: bool,
    ) -> Path | None:
        """Phases 3 and 4."""
        failure = ""
        if self.partners.is_main:
            failure = attempt(f"{SAVE}: publish", lambda: self._complete(write_metadata, checksum))
            if self.published is None:
                self._drop()
            elif not failure:
                attempt(f"{SAVE}: retention", lambda: self._tidy(keep_last, keep_every))
        attempt_number = -1 if self.published is None else self.published.attempt
        verdict = self.partners.maximum(1 + attempt_number)
        if not verdict:
            self._tell({rank: text for rank, text in self.partners.exchange(failure).items() if text})
            return None
        target = self.directory / Published(self.step, verdict - 1).name
        if not files.wait_until(lambda: files.look_for(target), VISIBLE_TIMEOUT_S):
            logger.warning("rank %d does not see %s yet", self.partners.rank, target)
        return target

    def _complete(self, write_metadata: Callable[[Path], Any] | None, checksum: bool) -> None:
        """Everything in the folder durable, the manifest last; then its name."""
        if write_metadata is not None:
            write_metadata(self.saving)
        write_manifest(self.saving, self.step, checksum)
        files.sync_tree(self.saving)
        attempts = [each.attempt for each in list_published(self.directory) if each.step == self.step]
        published = Published(self.step, 1 + max(attempts, default=-1))
        files.publish(self.saving, self.directory / published.name)
        self.published = published
        files.sync(self.directory)

    def _tidy(self, keep_last: int | None, keep_every: int | None) -> None:
        assert self.published is not None
        files.write_durably(self.directory / POINTER, self.published.name)
        delete_superseded(self.directory, self.published, keep_last, keep_every)

    def _drop(self) -> None:
        """Delete the folder of a save that failed; an error of that is deferred too."""
        if self.partners.is_main and self.saving.name:
            attempt(f"{SAVE}: clean up", lambda: files.discard(self.saving))

    def _put_away(self) -> None:
        """Leave the folder to be deleted by the next run: other ranks may still write into it."""
        try:
            files.put_away(self.saving)
        except OSError:
            return

    def _tell(self, failures: dict[int, str]) -> None:
        rank, text = next(iter(failures.items()))
        logger.warning(
            "the checkpoint of step %d was not saved on any rank; rank %d: %s%s",
            self.step,
            rank,
            text,
            f" (and {name_ranks(list(failures)[1:])})" if len(failures) > 1 else "",
        )


def _save_and_wait(save_state: Callable[[Path], Any], saving: Path) -> None:
    """Run ``save_state``; ``torch.distributed.checkpoint.async_save`` returns a future, or two in one."""
    result = save_state(saving)
    future = getattr(result, "upload_completion", result)
    if isinstance(future, Future):
        future.result()
