"""The four phases of one save, of which only the second may raise on one rank alone.

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
from spmdguard.latch import latch
from spmdguard.work import CollectiveWork

logger = logging.getLogger("spmdguard")
VISIBLE_TIMEOUT_S = 90.0
"""How long a rank looks for a folder that another one made; NFS may hide it for 60 s."""

_active: PerProcess[set[str]] = PerProcess(set)
_work = CollectiveWork(SAVE)


@dataclass
class Save:
    """One save: its folder and the ranks that take part."""

    directory: Path
    step: int
    partners: Partners
    write_metadata: Callable[[Path], Any] | None = None
    keep_last: int | None = None
    keep_every: int | None = None
    checksum: bool = False
    saving: Path = Path()
    state: Any = None
    failure: str = ""
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
        self.syncs = first_of_host == partners.rank and own["host"] != main["host"]
        if all(each["host"] == main["host"] for each in said.values()):
            return True  # what one process of a host made, all of them see
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

    def begin_state(self, save_state: Callable[[Path], Any]) -> None:
        """Phase 2, up to where ``save_state`` returns; it may go on in the background."""
        deferred_before = count_deferred()
        _work.begin()
        self.state = self._raise_at_once(save_state, self.saving)
        if count_deferred() != deferred_before:
            self.failure = "an error was deferred while it ran save_state"

    def finish_state(self) -> bool:
        """The rest of phase 2, and the exchange that says whether every rank has all its files."""
        self._raise_at_once(_wait_for, self.state)
        self.state = None
        if self.syncs and not self.failure:
            self.failure = attempt(f"{SAVE}: sync", lambda: files.sync_tree(self.saving))
        failures = self.partners.share_failures(self.failure)
        if failures:
            self._drop()
            self._tell(failures)
        return not failures

    def _raise_at_once(self, call: Callable[[Any], Any], argument: Any) -> Any:
        try:
            return _work.step(call, argument)
        except BaseException as exc:
            # the folder stays where it is: other ranks may still write into it, and an error of theirs about a
            # folder that has gone would come before this one; the next save deletes it
            _work.fail(exc)
            raise

    def publish(self) -> Path | None:
        """Phases 3 and 4."""
        failure = ""
        if self.partners.is_main:
            failure = attempt(f"{SAVE}: publish", self._complete)
            if self.published is None:
                self._drop()
            elif not failure:
                attempt(f"{SAVE}: retention", self._tidy)
        attempt_number = -1 if self.published is None else self.published.attempt
        verdict = self.partners.maximum(1 + attempt_number)
        if not verdict:
            self._tell({rank: text for rank, text in self.partners.exchange(failure).items() if text})
            return None
        target = self.directory / Published(self.step, verdict - 1).name
        if not files.wait_until(lambda: files.look_for(target), VISIBLE_TIMEOUT_S):
            logger.warning("rank %d does not see %s yet", self.partners.rank, target)
        return target

    def forget(self) -> None:
        """The folder is nobody's any more: a later save may delete it where it is still there."""
        _active().discard(self.saving.name)

    def _complete(self) -> None:
        """Everything in the folder durable, the manifest last; then its name."""
        if self.write_metadata is not None:
            self.write_metadata(self.saving)
        write_manifest(self.saving, self.step, self.checksum)
        files.sync_tree(self.saving)
        attempts = [each.attempt for each in list_published(self.directory) if each.step == self.step]
        published = Published(self.step, 1 + max(attempts, default=-1))
        files.publish(self.saving, self.directory / published.name)
        self.published = published
        files.sync(self.directory)

    def _tidy(self) -> None:
        assert self.published is not None
        files.write_whole(self.directory / POINTER, self.published.name)
        delete_superseded(self.directory, self.published, self.keep_last, self.keep_every)

    def _drop(self) -> None:
        """Delete the folder of a save that failed; an error of that is deferred too."""
        if self.partners.is_main and self.saving.name:
            attempt(f"{SAVE}: clean up", lambda: files.discard(self.saving))

    def _tell(self, failures: dict[int, str]) -> None:
        rank, text = next(iter(failures.items()))
        logger.warning(
            "the checkpoint of step %d was not saved on any rank; rank %d: %s%s",
            self.step,
            rank,
            text,
            f" (and {name_ranks(list(failures)[1:])})" if len(failures) > 1 else "",
        )


def _wait_for(state: Any) -> None:
    """Wait for what ``save_state`` returned: ``dcp.async_save`` returns a future, or two in one object."""
    future = getattr(state, "upload_completion", state)
    if isinstance(future, Future):
        future.result()
