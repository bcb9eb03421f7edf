"""Guarantees 2 and 3: keep the first error without its frames' locals, log the rest, raise and clear."""

from __future__ import annotations

import gc
import logging
import os
import threading
import traceback
import weakref
from typing import Any

import pytest

import spmdguard
from spmdguard import current


class Big:
    """Stands for a tensor: something that a failed call's locals would keep alive."""


def fail(message: str = "disk full", big: Any = None) -> None:
    held = big
    raise OSError(message, held is None)


def deferred_by_decorator(big: Any) -> None:
    spmdguard.rank_local(fail)("x", big)


def deferred_by_call(big: Any) -> None:
    spmdguard.try_or_defer(fail, "x", big)


def deferred_by_block(big: Any) -> None:
    with spmdguard.deferring("x"):
        fail("x", big)


def deferred_by_hand(big: Any) -> None:
    try:
        fail("x", big)
    except OSError as error:
        spmdguard.defer_error(error)


def deferred_in_a_chain(big: Any) -> None:
    @spmdguard.rank_local
    def convert() -> None:
        try:
            fail("x", big)
        except OSError as error:
            raise ValueError("chained") from error

    convert()


def deferred_in_a_group(big: Any) -> None:
    @spmdguard.rank_local
    def gather() -> None:
        try:
            fail("x", big)
        except OSError as error:
            group = type("Group", (Exception,), {"exceptions": (error,)})
            raise group("grouped") from None

    gather()


WAYS = [
    deferred_by_decorator,
    deferred_by_call,
    deferred_by_block,
    deferred_by_hand,
    deferred_in_a_chain,
    deferred_in_a_group,
]


@pytest.mark.parametrize("way", WAYS)
def test_locals_of_the_failed_call_are_freed_at_once(way: Any) -> None:
    """Whatever the failed frames held is freed although their traceback is kept."""
    big = Big()
    freed = weakref.ref(big)
    way(big)
    del big
    gc.collect()
    assert spmdguard.has_deferred_error()
    assert freed() is None


def test_tensors_of_the_failed_call_are_freed_at_once() -> None:
    """A tensor of the failed call is gone without a garbage collection."""
    torch = pytest.importorskip("torch")
    tensor = torch.ones(1000)
    freed = weakref.ref(tensor)
    gc.disable()
    try:
        deferred_by_decorator(tensor)
        del tensor
        assert freed() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("way", WAYS[:4])
def test_the_traceback_is_kept(way: Any) -> None:
    """The stored traceback ends at the failing line, and the raised error is the original object."""
    way(None)
    stored = spmdguard.deferred_error()
    assert stored is not None
    last = traceback.extract_tb(stored.__traceback__)[-1]
    assert (last.name, last.line) == ("fail", "raise OSError(message, held is None)")
    with pytest.raises(OSError) as raised:
        spmdguard.raise_if_deferred_error()
    assert stored is raised.value
    assert last == traceback.extract_tb(stored.__traceback__)[-1]


def test_frames_that_still_run_are_shown_by_stand_ins() -> None:
    """A block's own frame is in the traceback by file, line and name, but is not held."""
    with spmdguard.deferring("x"):
        raise KeyError("in the block")
    stored = spmdguard.deferred_error()
    assert stored is not None
    (entry,) = traceback.extract_tb(stored.__traceback__)
    assert (__file__, "test_frames_that_still_run_are_shown_by_stand_ins") == (entry.filename, entry.name)
    assert entry.line == 'raise KeyError("in the block")'
    assert stored.__traceback__.tb_frame.f_locals == {}  # type: ignore[union-attr]  # there is an entry
    assert 'raise KeyError("in the block")' in "".join(traceback.format_exception(stored))


def test_the_first_error_wins_and_later_ones_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The first error is kept; later ones are logged with traceback and counted in a note on the first."""
    with caplog.at_level(logging.WARNING, logger="spmdguard"):
        for message in ("first", "second", "third"):
            spmdguard.try_or_defer(fail, message)
    with pytest.raises(OSError, match="first") as raised:
        spmdguard.raise_if_deferred_error()
    notes = raised.value.__notes__  # type: ignore[attr-defined]  # since Python 3.11
    assert "2 later errors were deferred" in notes[-1]
    first, *later = caplog.records
    assert [record.exc_info[1].args[0] for record in later if record.exc_info] == ["second", "third"]
    assert (first.levelno, [record.levelno for record in later]) == (logging.ERROR, [logging.WARNING] * 2)


def test_the_first_error_says_where_it_was_deferred() -> None:
    """A note names the work and the place of the call."""
    spmdguard.try_or_defer(fail)
    stored = spmdguard.deferred_error()
    (note,) = stored.__notes__  # type: ignore[union-attr]  # since Python 3.11
    assert note.startswith("deferred by spmdguard in 'fail' (called at ")
    assert note.endswith("in test_the_first_error_says_where_it_was_deferred)")


def test_raising_clears() -> None:
    """After the error was raised there is none; without one, raising does nothing."""
    spmdguard.raise_if_deferred_error()
    spmdguard.try_or_defer(fail)
    with pytest.raises(OSError):
        spmdguard.raise_if_deferred_error()
    assert (spmdguard.has_deferred_error(), spmdguard.deferred_error()) == (False, None)
    spmdguard.raise_if_deferred_error()


def test_deferring_the_same_error_twice_counts_once() -> None:
    """An error that passes two layers is one error."""
    error = OSError("x")
    spmdguard.defer_error(error)
    spmdguard.defer_error(error)
    with pytest.raises(OSError):
        spmdguard.raise_if_deferred_error()
    assert len([note for note in error.__notes__ if "later" in note]) + 1 == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [KeyboardInterrupt(), SystemExit(1), "text", None, OSError])
def test_only_exceptions_can_be_deferred(wrong: Any) -> None:
    """KeyboardInterrupt, SystemExit and what is no exception are refused, and shown."""
    with pytest.raises(TypeError, match="exc must be an Exception, got"):
        spmdguard.defer_error(wrong)
    assert not spmdguard.has_deferred_error()


def test_many_errors_do_not_grow_memory(caplog: pytest.LogCaptureFixture) -> None:
    """Of 10,000 deferred errors the first is kept and the others are freed."""
    logging.getLogger("spmdguard").disabled = True
    kept: list[weakref.ref[Exception]] = []

    class Tracked(Exception):
        pass

    def fail_tracked() -> None:
        error = Tracked()
        kept.append(weakref.ref(error))
        raise error

    try:
        for _ in range(10_000):
            spmdguard.try_or_defer(fail_tracked)
    finally:
        logging.getLogger("spmdguard").disabled = False
    gc.collect()
    assert sum(reference() is not None for reference in kept) == 1
    with pytest.raises(Tracked) as raised:
        spmdguard.raise_if_deferred_error()
    assert "9999 later errors" in raised.value.__notes__[-1]  # type: ignore[attr-defined]


def test_threads_share_one_store() -> None:
    """Errors deferred by many threads at once are one first and an exact count."""
    values = current.simulated_values()
    assert values is not None
    num_threads, num_each = 8, 50
    logging.getLogger("spmdguard").disabled = True

    def work() -> None:
        with current.simulated_process(values):
            for _ in range(num_each):
                spmdguard.try_or_defer(fail)

    threads = [threading.Thread(target=work) for _ in range(num_threads)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    finally:
        logging.getLogger("spmdguard").disabled = False
    with pytest.raises(OSError) as raised:
        spmdguard.raise_if_deferred_error()
    assert f"{num_threads * num_each - 1} later errors" in raised.value.__notes__[-1]  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_empty() -> None:
    """A child process has no deferred error; the parent keeps its own."""
    spmdguard.try_or_defer(fail)
    pid = os.fork()
    if pid == 0:
        os._exit(1 if spmdguard.has_deferred_error() else 0)
    _, status = os.waitpid(pid, 0)
    assert (os.waitstatus_to_exitcode(status), spmdguard.has_deferred_error()) == (0, True)
