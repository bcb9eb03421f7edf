"""The errors this package raises: data in attributes, text rendered from them; all can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spmdguard.format import escape_text, format_error, name_ranks

__all__ = [
    "CollectiveInRankLocalError",
    "CommunicationBroken",
    "LaunchFailed",
    "OtherRanksFailed",
    "RanksMissing",
    "RanksOutOfStep",
    "SpmdguardError",
    "StoreUnreachable",
    "TeardownTimeout",
    "UndecoratedWork",
]

_MAX_SHOWN = 8


def _rebuild(cls: type[SpmdguardError], data: dict[str, Any]) -> SpmdguardError:
    error = cls.__new__(cls)
    error.__dict__.update(data)
    return error


class SpmdguardError(Exception):
    """Base of every error that this package raises itself.

    Subclasses set attributes in ``__init__`` and render them in ``describe``.
    """

    def describe(self) -> dict[str, str]:
        """The parts of the message: ``title`` and, where known, ``saw``, ``where``, ``do``."""
        return {"title": type(self).__name__}

    def __str__(self) -> str:
        return format_error(**self.describe())

    def __reduce__(self) -> tuple[Callable[..., SpmdguardError], tuple[Any, ...]]:
        return _rebuild, (type(self), dict(self.__dict__))


class CollectiveInRankLocalError(SpmdguardError):
    """A collective was begun inside rank-local work; it did not start."""

    def __init__(self, *, operation: str, group: str, region: str, place: str) -> None:
        self.operation = operation
        self.group = group
        self.region = region
        self.place = place

    def describe(self) -> dict[str, str]:
        return {
            "title": f"{self.operation} was begun inside rank-local work and did not start",
            "saw": f"{self.operation} on {self.group} inside {self.region}",
            "where": self.place,
            "do": "move the collective out of the rank-local work, or decorate the function with "
            "@collective instead if every rank runs it",
        }


class CommunicationBroken(SpmdguardError):
    """A guarded collective was refused because an earlier one failed on this rank."""

    def __init__(self, *, operation: str, rank: int, failed: str, number: int, failure: str) -> None:
        self.operation = operation
        self.rank = rank
        self.failed = failed
        self.number = number
        self.failure = failure

    def describe(self) -> dict[str, str]:
        return {
            "title": f"{self.operation} was refused: communication is broken on rank {self.rank}",
            "saw": f"{self.failure}",
            "where": f"collective {self.failed!r}, number {self.number} on rank {self.rank}",
            "do": "let the first failure leave the run; no collective can succeed after it",
        }


class RanksMissing(SpmdguardError):
    """A collective did not complete because some ranks never came."""

    def __init__(
        self,
        *,
        operation: str,
        missing: Sequence[int] | None,
        arrived: Sequence[int],
        group: str,
        place: str,
        failure: str,
        elapsed_s: float,
    ) -> None:
        self.operation = operation
        self.missing = None if missing is None else tuple(missing)
        self.arrived = tuple(arrived)
        self.group = group
        self.place = place
        self.failure = failure
        self.elapsed_s = elapsed_s

    def describe(self) -> dict[str, str]:
        came = f"{name_ranks(self.arrived)} waited {self.elapsed_s:.1f} s on {self.group}"
        if self.missing is None:
            title = f"{self.operation} failed; which ranks were missing is not known"
            came += "; the store that would tell is unreachable"
            do = "look for a rank that ended or branched off before this call"
        elif self.missing:
            title = f"{name_ranks(self.missing)} did not come to {self.operation}"
            if len(self.missing) > 1 and "timed out" not in self.failure.lower():
                title += "; one of them ended, the others may still wait in it"
            do = (
                f"every rank of the group must call {self.operation} the same number of times; "
                "look for a branch, early return or exception on the ranks named"
            )
        else:
            title = f"{self.operation} failed on every rank"
            do = "look for another collective that met it, and for a broken connection"
        return {"title": title, "saw": f"{came} ({self.failure})", "where": self.place, "do": do}


class RanksOutOfStep(SpmdguardError):
    """Ranks met in ``sync_should_stop`` at different calls, or one of them in another collective."""

    def __init__(self, *, operation: str, own: int, other: int, rank: int, place: str) -> None:
        self.operation = operation
        self.own = own
        self.other = other
        self.rank = rank
        self.place = place

    def describe(self) -> dict[str, str]:
        return {
            "title": f"ranks are out of step in {self.operation}",
            "saw": f"rank {self.rank} at call {self.own} met another rank at call {self.other}"
            if 0 < self.other < self.own + 1000
            else f"another collective answered rank {self.rank} at call {self.own}",
            "where": self.place,
            "do": f"call {self.operation} once a step on every rank, outside rank-dependent branches",
        }


class OtherRanksFailed(SpmdguardError):
    """This rank did well, but others failed in rank-local work; raised where no rank may go on alone."""

    def __init__(self, *, failures: dict[int, str], place: str) -> None:
        self.failures = dict(failures)
        self.place = place

    def describe(self) -> dict[str, str]:
        first = min(self.failures)
        return {
            "title": f"{name_ranks(self.failures)} failed in rank-local work",
            "saw": f"rank {first}: {self.failures[first]}",
            "where": self.place,
            "do": f"read the traceback of rank {first}",
        }


class UndecoratedWork(SpmdguardError):
    """Strict mode saw collectives, or work of single ranks, that nothing classifies."""

    def __init__(self, *, collectives: Sequence[str], main_only: Sequence[str]) -> None:
        self.collectives = tuple(collectives)
        self.main_only = tuple(main_only)

    def describe(self) -> dict[str, str]:
        joint = "\n         "
        return {
            "title": f"{len(self.collectives)} collectives and {len(self.main_only)} pieces of work of single "
            "ranks are undecorated",
            "saw": joint.join([*self.collectives, *self.main_only]),
            "where": "strict_mode",
            "do": "decorate what all ranks do together with @collective, what may fail on one rank with @rank_local",
        }


class TeardownTimeout(SpmdguardError):
    """``destroy_process_group`` did not return in time."""

    def __init__(self, *, timeout_s: float, rank: int) -> None:
        self.timeout_s = timeout_s
        self.rank = rank

    def describe(self) -> dict[str, str]:
        return {
            "title": f"destroy_process_group did not return within {self.timeout_s:g} s",
            "saw": f"rank {self.rank} is still inside it",
            "where": "teardown",
            "do": "end the process with os._exit; the process group cannot be used any more",
        }


class StoreUnreachable(SpmdguardError):
    """The job's rendezvous store could not be held or reached.

    ``kind`` is ``unresolvable``, ``refused``, ``silent``, ``closed``, ``foreign`` (another service answers), ``taken``
    (the port is in use) or ``elsewhere`` (rank 0 is not on the host of ``MASTER_ADDR``).
    """

    def __init__(self, *, address: str, kind: str, reason: str) -> None:
        self.address = address
        self.kind = kind
        self.reason = reason

    def describe(self) -> dict[str, str]:
        return {
            "title": f"the rendezvous store at {escape_text(self.address)} cannot be reached",
            "saw": escape_text(self.reason),
            "where": "MASTER_ADDR and MASTER_PORT of this process",
            "do": "start rank 0 there, and give every process the same MASTER_ADDR and MASTER_PORT",
        }


class LaunchFailed(SpmdguardError):
    """The job was launched in a way in which it cannot run; found before the first collective.

    ``faults`` holds (code, title, what was seen, what to do) of each fault, the gravest first.
    """

    def __init__(
        self, *, faults: Sequence[tuple[str, str, str, str]], process: str, elapsed_s: float
    ) -> None:
        self.faults = tuple(faults)
        self.process = process
        self.elapsed_s = elapsed_s

    @property
    def codes(self) -> tuple[str, ...]:
        """The code of each fault."""
        return tuple(code for code, *_ in self.faults)

    def describe(self) -> dict[str, str]:
        _, title, saw, do = self.faults[0]
        where = f"start-up handshake, after {self.elapsed_s:.1f} s, seen by {self.process}"
        return {"title": title, "saw": saw, "where": where, "do": do}

    def __str__(self) -> str:
        others = [
            format_error(f"also: {title}", saw=saw, do=do if do != self.faults[0][3] else "")
            for _, title, saw, do in self.faults[1:_MAX_SHOWN]
        ]
        if len(self.faults) > _MAX_SHOWN:
            others.append(f"and {len(self.faults) - _MAX_SHOWN} more faults")
        return "\n".join([super().__str__(), *others])
