"""Guarantee 5: an exception out of ``@collective`` is raised unchanged, and later collectives refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import spmdguard
from spmdguard import region


@spmdguard.collective
def broken(error: BaseException) -> None:
    raise error


@spmdguard.collective
def fine(value: int = 1) -> int:
    return value


def notes_of(exc: BaseException) -> list[str]:
    return list(getattr(exc, "__notes__", []))


def test_results_pass_through() -> None:
    """Without an error the call is the plain call."""
    assert (fine(), fine(value=5)) == (1, 5)


@pytest.mark.parametrize("error", [OSError("x"), KeyboardInterrupt(), SystemExit(2)])
def test_the_error_is_raised_unchanged_with_a_note(error: BaseException) -> None:
    """The same object comes out, with a note of rank, name and number."""
    fine()
    with pytest.raises(type(error)) as raised:
        broken(error)
    assert error is raised.value
    assert notes_of(error) == ["spmdguard: raised by rank 0 in collective 'broken' (number 2 on this rank)"]


def test_later_collectives_refuse_from_the_first_failure() -> None:
    """Every guarded collective, barrier, sync and agreement refuses at once and names the first failure."""
    first = OSError("first")
    with pytest.raises(OSError):
        broken(first)
    for refused in (
        fine,
        lambda: broken(ValueError()),
        spmdguard.barrier,
        spmdguard.sync_should_stop,
        lambda: spmdguard.main_process_first().__enter__(),
    ):
        with pytest.raises(spmdguard.CommunicationBroken) as raised:
            refused()  # type: ignore[operator]  # callables of several signatures
        assert (
            raised.value.failed,
            raised.value.number,
            raised.value.failure,
        ) == ("broken", 1, "OSError: first")


def test_refused_work_does_not_run() -> None:
    """A refused collective's body is not entered."""
    entered = []
    work = spmdguard.collective(lambda: entered.append(1))
    with pytest.raises(OSError):
        broken(OSError())
    with pytest.raises(spmdguard.CommunicationBroken):
        work()
    assert entered == []


def swallow_by_decorator(call: Any) -> None:
    spmdguard.rank_local(call)()


def swallow_by_call(call: Any) -> None:
    spmdguard.try_or_defer(call)


def swallow_by_block(call: Any) -> None:
    with spmdguard.deferring("x"):
        call()


def swallow_in_a_chain(call: Any) -> None:
    @spmdguard.rank_local
    def work() -> None:
        try:
            call()
        except OSError as error:
            raise ValueError("converted") from error

    try:
        work()
    except ValueError as error:
        assert error.__cause__ is not None
        raise error.__cause__ from None


@pytest.mark.parametrize(
    "swallow", [swallow_by_decorator, swallow_by_call, swallow_by_block, swallow_in_a_chain]
)
def test_enclosing_rank_local_work_does_not_swallow_it(swallow: Any) -> None:
    """The failure passes through rank-local work, also converted by it, and so does the later refusal."""
    with pytest.raises(OSError, match="lost"):
        swallow(lambda: broken(OSError("lost")))
    with pytest.raises(spmdguard.CommunicationBroken):
        swallow(fine)
    assert not spmdguard.has_deferred_error()


def test_it_cannot_be_deferred_by_hand() -> None:
    """`defer_error` raises a failure of a collective again."""
    with pytest.raises(OSError) as raised:
        broken(OSError("lost"))
    with pytest.raises(OSError) as again:
        spmdguard.defer_error(raised.value)
    assert (raised.value, False) == (again.value, spmdguard.has_deferred_error())


def test_rank_local_work_while_handling_it_is_still_deferred() -> None:
    """An own error of rank-local work that runs in the handler of a failed collective is deferred."""
    try:
        broken(OSError("lost"))
    except OSError:
        spmdguard.try_or_defer(int, "x")
    assert isinstance(spmdguard.deferred_error(), ValueError)


def test_nested_collectives_note_once() -> None:
    """An error that leaves two collectives carries the note of the inner one."""

    @spmdguard.collective
    def outer() -> None:
        broken(OSError("x"))

    with pytest.raises(OSError) as raised:
        outer()
    (note,) = notes_of(raised.value)
    assert "in collective 'broken' (number 2 on this rank)" in note


def test_rank_local_work_inside_a_collective_is_deferred() -> None:
    """A collective may do rank-local work whose error is deferred; communication stays whole."""

    @spmdguard.collective
    def save() -> str:
        spmdguard.try_or_defer(int, "x")
        return "saved"

    assert (save(), fine()) == ("saved", 1)
    assert isinstance(spmdguard.deferred_error(), ValueError)


def test_coroutines_generators_and_async_generators() -> None:
    """Every kind of function closes the latch with its own error and refuses afterwards."""

    @spmdguard.collective
    async def coroutine() -> None:
        await asyncio.sleep(0)
        raise OSError("coroutine")

    with pytest.raises(OSError, match="coroutine") as raised:
        asyncio.run(coroutine())
    assert "in collective" in notes_of(raised.value)[0]
    with pytest.raises(spmdguard.CommunicationBroken):
        asyncio.run(coroutine())


def test_generators_close_the_latch() -> None:
    """A generator's own error closes the latch; the consumer's does not."""

    @spmdguard.collective
    def items() -> Iterator[Any]:
        yield region.current_collective()
        raise OSError("generator")

    consumed: Any = items()
    assert "items" in next(consumed)
    with pytest.raises(ValueError, match="consumer"):
        consumed.throw(ValueError("consumer"))
    assert (fine(), region.current_collective()) == (1, None)
    with pytest.raises(OSError, match="generator"):
        list(items())
    with pytest.raises(spmdguard.CommunicationBroken):
        fine()


def test_async_generators_close_the_latch() -> None:
    """An asynchronous generator's own error closes the latch."""

    @spmdguard.collective
    async def items() -> AsyncIterator[int]:
        yield 1
        raise OSError("async generator")

    async def consume() -> list[int]:
        return [item async for item in items()]

    with pytest.raises(OSError, match="async generator"):
        asyncio.run(consume())
    with pytest.raises(spmdguard.CommunicationBroken):
        fine()


def test_resuming_without_a_failure_does_nothing() -> None:
    """`resume_communication` is harmless while communication works, and reopens it in a single process."""
    spmdguard.resume_communication()
    with pytest.raises(OSError):
        broken(OSError())
    spmdguard.resume_communication()
    assert fine() == 1
