"""What cannot be recovered ends its process at once, with a documented code, the cause and the memory in use."""

from __future__ import annotations

import asyncio
import errno
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import spmdguard
from spmdguard.memory import DEVICE_ADVICE, HOST_ADVICE, advise, describe_memory, is_out_of_memory
from spmdguard.testing import SimulatedWorld

from .processes import Zygote


class OutOfMemoryError(RuntimeError):
    """Named as torch's."""


def chained(cause: BaseException) -> BaseException:
    error = ValueError("wrapped")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("exc", "expected"),
    [
        (MemoryError(), True),
        (OutOfMemoryError("x"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (chained(MemoryError()), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (ValueError("out of memory"), False),
        (RuntimeError("shape mismatch"), False),
    ],
)
def test_exhausted_memory_is_recognised(exc: BaseException, expected: bool) -> None:
    """Of the host, of torch's host allocator, of devices, and as a cause; nothing else."""
    assert is_out_of_memory(exc) is expected


def test_advice_is_for_the_memory_that_is_exhausted() -> None:
    """A device's error gets other advice than the host's."""
    errors = [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory"),
    ]
    assert [advise(each) for each in errors] == [HOST_ADVICE, HOST_ADVICE, DEVICE_ADVICE]


def test_memory_in_use_is_told() -> None:
    """Of this process and of the host, in GiB."""
    assert " GiB of host memory in this process (peak " in describe_memory()
    assert " GiB free on the host" in describe_memory()


@pytest.mark.parametrize(
    ("exc", "code", "words"),
    [
        (OSError("disk is gone"), 72, "ends at once with exit code 72 (FAILED_FAST): OSError: disk is gone"),
        (MemoryError("too much"), 73, "GiB of host memory in this process"),
    ],
)
def test_it_ends_with_a_documented_code(
    exc: Exception, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Out of memory has a code of its own; both name the cause, and where it was raised."""

    @spmdguard.fail_fast
    def work() -> None:
        raise exc

    with pytest.raises(SystemExit) as ended:  # a simulated process, so it does not end the test's
        work()
    assert ended.value.code == code
    written = capsys.readouterr().err
    assert written.startswith("spmdguard: rank 0 failed\nTraceback")
    assert words in written
    if code == 73:
        assert "where: tests/runtime/test_fail_fast.py:" in written and f"do:    {HOST_ADVICE}" in written


@pytest.mark.parametrize("exc", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_ways_to_leave_are_no_failures(exc: BaseException) -> None:
    """Interrupts and exits pass unless they are named."""
    with pytest.raises(type(exc)), spmdguard.fail_fast():
        raise exc


def test_only_the_errors_named_end_it() -> None:
    """Others pass unchanged."""
    with pytest.raises(KeyError), spmdguard.fail_fast(errors=(OSError, ValueError)):
        raise KeyError
    with pytest.raises(SystemExit), spmdguard.fail_fast(errors=(OSError, ValueError)):
        raise ValueError
    with pytest.raises(ValueError, match="x"), spmdguard.fail_fast(errors="out of memory"):
        raise ValueError("x")


@pytest.mark.parametrize("wrong", ["memory", OSError(), (OSError, 3)])
def test_wrong_errors_are_refused(wrong: Any) -> None:
    """With what was given."""
    with pytest.raises(TypeError, match="errors must be exception classes"):
        spmdguard.fail_fast(errors=wrong)


def test_coroutines_and_generators_end_it_too() -> None:
    """An error in the middle of resumed work ends the process, results pass."""

    @spmdguard.fail_fast
    async def later(fails: bool) -> int:
        await asyncio.sleep(0)
        if fails:
            raise OSError
        return 3

    @spmdguard.fail_fast
    def items() -> Iterator[int]:
        yield 1
        raise OSError

    assert asyncio.run(later(False)) == 3
    running = later(True)
    with pytest.raises(SystemExit):
        while True:
            running.send(None)
    made = items()
    assert next(made) == 1
    with pytest.raises(SystemExit):
        next(made)


def test_hooks_are_put_back() -> None:
    """`uninstall` restores the hooks of the interpreter and of the loop."""
    loop = asyncio.new_event_loop()
    before = sys.excepthook, threading.excepthook, loop.get_exception_handler()
    guard = spmdguard.fail_fast().install(loop)
    assert sys.excepthook is not before[0]
    guard.uninstall()
    assert (sys.excepthook, threading.excepthook, loop.get_exception_handler()) == before
    loop.close()


def test_other_ranks_learn_the_cause() -> None:
    """A simulated rank ends with the code, its reporter is told, and the others name its error."""

    def train() -> None:
        with spmdguard.run():
            if not spmdguard.is_main_process():
                with spmdguard.fail_fast():
                    raise MemoryError("no more")
            spmdguard.barrier()

    main, other = SimulatedWorld(2, torch=False).outcomes(train)
    assert isinstance(other.error, SystemExit) and other.error.code == 73
    assert isinstance(main.error, spmdguard.RanksMissing)
    assert "consequence of the failure of rank 1: MemoryError: no more" in main.error.__notes__[-1]


CASES = [
    ("decorator", "MemoryError", 73),
    ("decorator", "torch on the host", 73),
    ("context", "device", 73),
    ("thread", "other", 72),
    ("task", "other", 72),
    ("excepthook", "device", 73),
    ("excepthook", "other", 72),
]


@pytest.mark.processes
@pytest.mark.parametrize(("how", "what", "code"), CASES)
@pytest.mark.parametrize("failing", [0, pytest.param(1, marks=pytest.mark.long)])
def test_real_ranks_end_at_once(zygote: Zygote, how: str, what: str, code: int, failing: int) -> None:
    """The failing rank ends with its code, the other at once with the cause; the reporter is told."""
    ended = zygote.run("failing_fast:fails_fast", ranks=2, timeout_s=15, how=how, what=what, failing=failing)
    assert (ended.hung, ended.num_left_over) == ([], 0), ended.report()
    assert ended[failing].code == code, ended.report()
    assert ended[1 - failing].failed, ended.report()
    assert f"ends at once with exit code {code}" in ended[failing].err, ended.report()
    if how != "excepthook":
        assert f"rank {failing} failed first: " in ended[1 - failing].err, ended.report()
        assert "reporter closed: FAILED" in ended[0].out, ended.report()
