"""A tracker is told the truth about the whole run, is opened once, and cannot harm the run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import spmdguard
from spmdguard.reporters import ContextReporter, Outcome, Reporter, ReporterGroup, WriterReporter
from spmdguard.reporters.base import call_within
from spmdguard.reporters.outcome import find_root_cause, outcome_of

from ..processes import Ranks, Zygote

NONE_FAILED = ("open", "close FINISHED ")
CELLS = {
    "nothing": ([0, 0], *NONE_FAILED),
    "main local": ([1, 0], "open", "close FAILED rank 0: OSError: upload"),
    "other local": ([1, 1], "open", "close FAILED rank 1: OSError: upload"),
    "other at once": ([1, 1], "open", "close FAILED rank 1: OSError: at once"),
    "post_train": ([1, 0], "open", "close FAILED rank 0: OSError: export"),
    "log": ([1, 0], "open", "close FAILED rank 0: ConnectionError: tracker is down: log"),
    "close": ([1, 0], *NONE_FAILED),
}


def run_tracked(zygote: Zygote, failing: str) -> Ranks:
    ended = zygote.run("tracking:tracked", ranks=2, timeout_s=40, kind="recorder", failing=failing)
    assert ended.hung == [], ended.report()
    return ended


@pytest.mark.processes
@pytest.mark.parametrize("failing", CELLS)
def test_the_tracker_is_told_how_the_whole_run_ended(zygote: Zygote, failing: str) -> None:
    """FINISHED only where nothing failed on any rank; else FAILED with the root cause; main opens alone."""
    ended = run_tracked(zygote, failing)
    codes, first, last = CELLS[failing]
    assert [each.code for each in ended.ranks] == codes, ended.report()
    said = [line for line in ended[0].out.splitlines() if line.startswith(("open", "close"))]
    assert [line.strip() for line in said] == [first, last.strip()], ended.report()
    assert [line for line in ended[1].out.splitlines() if not line.startswith("stopped")] == []


@pytest.mark.processes
def test_a_tracker_that_does_not_open_is_deferred(zygote: Zygote) -> None:
    """The run goes on without it, stops in agreement, and ends with the tracker's error."""
    ended = run_tracked(zygote, "open")
    assert [each.code for each in ended.ranks] == [1, 0], ended.report()
    assert [each.out.splitlines() for each in ended.ranks] == [
        ["open", "stopped after 0"],
        ["stopped after 0"],
    ]
    assert "ConnectionError: tracker is down: open" in ended[0].err


class Recorder(Reporter):
    """Keeps what it is told; fails where told."""

    def __init__(self, *failing: str) -> None:
        super().__init__()
        self.failing = failing
        self.told: list[Any] = []

    def _note(self, what: str, *details: Any) -> None:
        self.told.append((what, *details))
        if what in self.failing:
            raise OSError(f"tracker: {what}")

    def _open(self) -> None:
        self._note("open")

    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        self._note("log", dict(metrics), step)

    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        self._note("close", outcome.status, outcome.cause)


def fail(exc: BaseException) -> Any:
    raise exc


@pytest.mark.parametrize(
    ("exc", "status", "cause", "exit_code"),
    [
        (None, "FINISHED", "", 0),
        (SystemExit(0), "FINISHED", "", 0),
        (SystemExit(3), "FAILED", "rank 0: SystemExit: 3", 1),
        (KeyboardInterrupt(), "KILLED", "rank 0: KeyboardInterrupt", 130),
        (OSError("disk"), "FAILED", "rank 0: OSError: disk", 1),
    ],
)
def test_every_way_to_end_has_its_status(
    exc: BaseException | None, status: str, cause: str, exit_code: int
) -> None:
    """Interrupts are KILLED, exits with a code are failures, exits without one are not."""
    outcome = outcome_of(exc)
    assert (outcome.status, outcome.cause, outcome.exit_code) == (status, cause, exit_code)


def test_a_deferred_error_is_not_reported_as_success() -> None:
    """A reporter that is closed while an error waits says FAILED with that error."""
    reporter = Recorder()
    with reporter:
        spmdguard.defer_error(OSError("waiting"))
    assert reporter.told == [("open",), ("close", "FAILED", "rank 0: OSError: waiting")]


def test_the_root_cause_may_be_another_rank() -> None:
    """What other ranks reported, in an error's data or in its note, comes before this rank's own error."""
    other = spmdguard.OtherRanksFailed(failures={3: "OSError: a", 2: "OSError: b"}, place="end")
    assert find_root_cause(other) == "rank 2: OSError: b"
    lost = RuntimeError("connection closed")
    assert find_root_cause(lost) == "rank 0: RuntimeError: connection closed"
    with contextlib.suppress(AttributeError):
        lost.__notes__ = ["spmdguard: consequence of the failure of rank 7: OSError: c"]  # type: ignore[attr-defined]
    assert find_root_cause(lost) == "rank 7: OSError: c"


def test_errors_of_the_tracker_are_deferred() -> None:
    """A failing log does not leave the call; the first error waits for the end."""
    reporter = Recorder("log")
    with reporter:
        reporter.log({"loss": 1.0}, step=3)
        reporter.log({"loss": 2.0})
    assert str(spmdguard.deferred_error()) == "tracker: log"
    assert reporter.told[1] == ("log", {"loss": 1.0}, 3)


def test_a_tracker_that_cannot_close_does_not_hide_the_failure(caplog: pytest.LogCaptureFixture) -> None:
    """The run's own error leaves, with a note; where nothing else failed, the tracker's error leaves."""
    with pytest.raises(ValueError, match="own") as caught, Recorder("close"):
        fail(ValueError("own"))
    assert "could not be closed: OSError: tracker: close" in caught.value.__notes__[0]  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="tracker: close"), Recorder("close"):
        pass


def test_a_reporter_that_is_not_open_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On other ranks, and outside the with block, nothing reaches the tracker."""
    reporter = Recorder()
    reporter.log({"loss": 1.0})
    monkeypatch.setenv("RANK", "1")
    with reporter:
        reporter.log({"loss": 1.0})
    assert (reporter.told, reporter.is_open) == ([], False)


def test_no_collective_starts_while_logging() -> None:
    """Reporting is rank-local work, and its region has the reporter's name."""
    from spmdguard.region import current_region

    seen: list[str | None] = []
    reporter = ContextReporter(contextlib.nullcontext, log=lambda *_: seen.append(current_region()))
    with reporter:
        reporter.log({})
    assert seen == ["context reporter: log"]


class Writer:
    """As a SummaryWriter."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def add_scalar(self, name: str, value: float, step: int | None) -> None:
        self.told.append((name, value, step))

    def add_text(self, name: str, text: str) -> None:
        self.told.append((name, text))

    def close(self) -> None:
        self.told.append("closed")


def test_a_writer_is_told_the_outcome_as_text() -> None:
    """Scalars go to the writer, then the outcome, then it is closed."""
    writer = Writer()
    with contextlib.suppress(OSError), WriterReporter(lambda: writer) as reporter:
        reporter.log({"loss": 1.0, "rate": 0.5}, step=2)
        fail(OSError("disk"))
    outcome = ("spmdguard/outcome", "FAILED: rank 0: OSError: disk")
    assert writer.told == [("loss", 1.0, 2), ("rate", 0.5, 2), outcome, "closed"]


@contextlib.contextmanager
def swallowing(seen: list[str]) -> Iterator[str]:
    try:
        yield "entered"
    except Exception as exc:
        seen.append(str(exc))


def test_a_context_manager_sees_the_failure_and_cannot_hide_it() -> None:
    """The exception is passed on to it; that it swallows the exception does not matter."""
    seen: list[str] = []
    with pytest.raises(OSError, match="disk"), ContextReporter(lambda: swallowing(seen)) as reporter:
        assert isinstance(reporter, ContextReporter) and reporter.entered == "entered"
        fail(OSError("disk"))
    assert seen == ["disk"]


def test_a_context_manager_learns_of_a_deferred_error() -> None:
    """Where nothing was raised but an error waits, it sees an exception that says so."""
    seen: list[str] = []
    with ContextReporter(lambda: swallowing(seen)):
        spmdguard.defer_error(OSError("waiting"))
    assert seen == ["the run failed: rank 0: OSError: waiting"]


def test_a_group_tells_each_reporter() -> None:
    """One that cannot open or close keeps none of the others from hearing how it ended."""
    first, broken, last = Recorder(), Recorder("open", "close"), Recorder("close")
    with pytest.raises(OSError, match="close"), ReporterGroup(first, broken, last) as group:
        group.log({"loss": 1.0})
        spmdguard.deferred_error()
        with contextlib.suppress(OSError):
            spmdguard.raise_if_deferred_error()
    expected = [("open",), ("log", {"loss": 1.0}, None), ("close", "FINISHED", "")]
    assert (first.told, broken.told, last.told) == (expected, [("open",)], expected)


@pytest.mark.parametrize("make", [ContextReporter, WriterReporter])
def test_what_is_already_made_is_refused(make: Callable[[Any], Any]) -> None:
    """A writer instead of a function that makes one would be open on every rank."""
    with pytest.raises(TypeError, match="must be callable, got"):
        make(3)


def test_waiting_for_a_tracker_is_bounded() -> None:
    """A call that does not return in time is left behind; errors and results come back."""
    import threading

    never = threading.Event()
    with pytest.raises(TimeoutError, match=r"closing did not return within 0.05 s"):
        call_within(never.wait, 0.05, "closing")
    with pytest.raises(OSError, match="disk"):
        call_within(lambda: fail(OSError("disk")), 5, "closing")
    never.set()
