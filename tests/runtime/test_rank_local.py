"""Guarantee 1: a deferred ``Exception`` never leaves the decorated call; other exceptions always do."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import spmdguard
from spmdguard import region
from spmdguard.group import world as world_module


def deferred() -> Exception | None:
    """The deferred error, taken out."""
    error = spmdguard.deferred_error()
    try:
        spmdguard.raise_if_deferred_error()
    except Exception as raised:
        assert raised is error
    return error


@pytest.mark.parametrize("error", [OSError("x"), RuntimeError(), MemoryError(), StopIteration()])
def test_exceptions_do_not_leave(error: Exception) -> None:
    """The call returns None and the error is deferred, whatever its type."""

    @spmdguard.rank_local
    def work() -> int:
        raise error

    assert work() is None
    assert error is deferred()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_other_exceptions_always_leave(error: BaseException) -> None:
    """KeyboardInterrupt, SystemExit and GeneratorExit leave every form of rank-local work."""

    @spmdguard.rank_local
    def work() -> None:
        raise error

    @spmdguard.rank_local
    async def work_async() -> None:
        raise error

    def in_block() -> None:
        with spmdguard.deferring("x"):
            raise error

    for call in (work, lambda: spmdguard.try_or_defer(work), in_block):
        with pytest.raises(type(error)) as raised:
            call()
        assert error is raised.value
    with pytest.raises(type(error)):
        work_async().send(None)
    assert deferred() is None


def test_results_arguments_and_identity_pass_through() -> None:
    """Without an error the call is the plain call; name, docstring and signature are the function's."""

    @spmdguard.rank_local
    def work(a: int, *rest: int, b: int = 0, **more: int) -> tuple[Any, ...]:
        """Its docstring."""
        return a, rest, b, more

    assert work(1, 2, 3, b=4, c=5) == (1, (2, 3), 4, {"c": 5})
    assert (work.__name__, work.__doc__) == ("work", "Its docstring.")
    assert list(inspect.signature(work).parameters) == ["a", "rest", "b", "more"]


def test_default_stands_in_for_the_lost_result() -> None:
    """`default` is returned after a deferred error."""
    assert spmdguard.rank_local(default=7)(lambda: 1 / 0)() == 7
    assert isinstance(deferred(), ZeroDivisionError)


def test_methods_of_every_kind() -> None:
    """Methods, static and class methods and properties work with the decorator next to the function."""

    class Tracker:
        name = "t"

        @spmdguard.rank_local
        def method(self) -> str:
            return self.name

        @staticmethod
        @spmdguard.rank_local
        def static() -> int:
            return 1

        @classmethod
        @spmdguard.rank_local
        def of_class(cls) -> str:
            return cls.__name__

        @property
        @spmdguard.rank_local
        def broken(self) -> int:
            raise OSError("x")

    tracker = Tracker()
    assert (tracker.method(), tracker.static(), tracker.of_class(), tracker.broken) == (
        "t",
        1,
        "Tracker",
        None,
    )
    assert isinstance(deferred(), OSError)


@pytest.mark.parametrize("decorate", [spmdguard.rank_local, spmdguard.collective])
@pytest.mark.parametrize(
    ("wrap", "name"),
    [
        (property, "property"),
        (staticmethod, "staticmethod"),
        (classmethod, "classmethod"),
        (functools.cached_property, "cached_property"),
    ],
)
def test_descriptors_in_the_wrong_order_are_told(decorate: Any, wrap: Any, name: str) -> None:
    """A decorator above a descriptor is a TypeError that shows the right order."""

    def loss(self: Any) -> int:
        return 1

    with pytest.raises(TypeError) as raised:
        decorate(wrap(loss))
    *_, first, second, third = str(raised.value).splitlines()
    assert [f"@{name}", f"@{decorate.__name__}", "def loss(...): ..."] == [
        line.strip() for line in (first, second, third)
    ]


@pytest.mark.parametrize("decorate", [spmdguard.rank_local, spmdguard.collective])
def test_classes_and_values_are_refused(decorate: Any) -> None:
    """A class, and what cannot be called, is a TypeError that names it."""

    class Model:
        pass

    with pytest.raises(TypeError, match=r"cannot decorate the class .*Model.*decorate its methods"):
        decorate(Model)
    with pytest.raises(TypeError, match="needs a function, got 3"):
        decorate(3)


@pytest.mark.parametrize(
    ("decorate", "advice"),
    [(spmdguard.rank_local, "with deferring"), (spmdguard.collective, "Put @contextmanager on top")],
)
@pytest.mark.parametrize("make", [contextlib.contextmanager, contextlib.asynccontextmanager])
def test_context_managers_are_told_what_to_do(decorate: Any, advice: str, make: Any) -> None:
    """A decorator above @contextmanager would guard nothing: a TypeError that says what to do."""

    def opened() -> Iterator[int]:
        yield 1

    async def opened_async() -> AsyncIterator[int]:
        yield 1

    made = make(opened if make is contextlib.contextmanager else opened_async)
    with pytest.raises(TypeError, match=f"above @contextmanager on 'opened.*{advice}"):
        decorate(made)


def test_collective_context_managers_work_below() -> None:
    """@contextmanager above @collective: an error on entry closes the latch, the block's own does not."""

    @contextlib.contextmanager
    @spmdguard.collective
    def opened(fails: bool) -> Iterator[int]:
        if fails:
            raise OSError("entry")
        yield 1

    with pytest.raises(ValueError, match="block"), opened(False):
        raise ValueError("block")
    with pytest.raises(OSError, match="entry"), opened(True):
        pass
    with pytest.raises(spmdguard.CommunicationBroken):
        spmdguard.barrier()


def test_wrong_only_is_refused_when_decorating() -> None:
    """`only` other than "main" and "local_main" is a ValueError that shows it."""
    with pytest.raises(ValueError, match=r"only must be .* got 'chief'"):
        spmdguard.rank_local(only="chief")  # type: ignore[call-overload]  # the error under test


@pytest.mark.parametrize(("only", "ranks"), [(None, [0, 1, 2, 3]), ("main", [0]), ("local_main", [0, 2])])
def test_only_leaves_ranks_out(only: Any, ranks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """`only` runs the work on the main rank, or on one rank per host; the others get the default."""
    ran = []
    work = spmdguard.rank_local(only=only, default=-1)(lambda rank: ran.append(rank))
    for rank in range(4):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("LOCAL_RANK", str(rank % 2))
        assert (None if rank in ranks else -1) == work(rank)
    assert ranks == ran


@pytest.mark.parametrize("only", ["main", None])
def test_only_leaves_ranks_out_of_resumed_work(only: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coroutines return the default and generators are empty on ranks that are left out."""
    monkeypatch.setenv("RANK", "1")

    @spmdguard.rank_local(only=only, default=-1)
    async def work() -> int:
        return 1

    @spmdguard.rank_local(only=only)
    def items() -> Iterator[int]:
        yield 1

    assert (-1, []) if only else (asyncio.run(work()), list(items())) == (1, [1])


def test_coroutines_are_deferred() -> None:
    """An awaited error is deferred; the decorated function stays a coroutine function."""

    async def fetch() -> None:
        await asyncio.sleep(0)
        raise OSError("x")

    @spmdguard.rank_local(default="lost")
    async def work() -> str:
        await fetch()
        return "done"

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(work()) == "lost"
    assert isinstance(deferred(), OSError)


def test_cancelling_a_coroutine_is_not_deferred() -> None:
    """Cancellation passes through rank-local coroutines, and so do timeouts of their caller."""

    @spmdguard.rank_local
    async def work() -> None:
        await asyncio.sleep(60)

    async def cancel() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert deferred() is None


def test_generators_end_early() -> None:
    """A generator's error is deferred and the generator ends; values sent to it arrive."""

    @spmdguard.rank_local
    def work() -> Any:
        received = yield 1
        yield received
        raise OSError("x")

    assert inspect.isgeneratorfunction(work)
    running = work()
    assert (next(running), running.send("sent")) == (1, "sent")
    assert list(running) == []
    assert isinstance(deferred(), OSError)


def test_a_consumers_exception_is_the_consumers() -> None:
    """What a consumer throws into a generator and it does not handle comes out again, not deferred."""

    @spmdguard.rank_local
    def work() -> Iterator[int]:
        yield 1

    running: Any = work()
    next(running)
    thrown = ValueError("consumer")
    with pytest.raises(ValueError) as raised:
        running.throw(thrown)
    assert (thrown, None) == (raised.value, deferred())


def test_a_generators_clean_up_is_deferred() -> None:
    """An error in `finally` of a generator that is closed early is deferred."""

    @spmdguard.rank_local
    def work() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise OSError("clean-up")

    running: Any = work()
    next(running)
    running.close()
    assert isinstance(deferred(), OSError)


def test_async_generators_end_early() -> None:
    """An asynchronous generator's error is deferred and the iteration ends."""

    @spmdguard.rank_local
    async def work() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0)
        raise OSError("x")

    async def consume() -> list[int]:
        return [item async for item in work()]

    assert inspect.isasyncgenfunction(work)
    assert asyncio.run(consume()) == [1]
    assert isinstance(deferred(), OSError)


def test_regions_nest_and_close() -> None:
    """Inner regions name the innermost work; after an error no region is left open."""
    seen = []

    @spmdguard.rank_local(name="inner")
    def inner() -> None:
        seen.append(region.current_region())
        raise OSError("x")

    @spmdguard.rank_local(name="outer")
    def outer() -> None:
        inner()
        seen.append(region.current_region())

    outer()
    assert [*seen, region.current_region()] == ["inner", "outer", None]
    assert isinstance(deferred(), OSError)


def test_regions_are_open_only_while_a_piece_runs() -> None:
    """Between the pieces of a generator or a coroutine its region is closed."""

    @spmdguard.rank_local(name="g")
    def items() -> Iterator[Any]:
        yield region.current_region()

    assert [(inside, region.current_region()) for inside in items()] == [("g", None)]


def test_calls_and_blocks() -> None:
    """`try_or_defer` hands arguments and the result on; `deferring` goes on after its block."""
    assert spmdguard.try_or_defer(max, 2, 5) == 5
    assert spmdguard.try_or_defer(int, "x") is None
    assert isinstance(deferred(), ValueError)
    block = spmdguard.deferring("write metadata")
    for _ in range(2):
        with block:
            raise OSError("x")
        assert isinstance(deferred(), OSError)


def test_misused_calls_and_blocks_are_told() -> None:
    """A result instead of a function, and a function instead of a name, are TypeErrors."""
    with pytest.raises(TypeError, match="fn must be callable, got None"):
        spmdguard.try_or_defer(print())  # type: ignore[func-returns-value, arg-type]  # the error under test
    with pytest.raises(TypeError, match="name must be a str, got <built-in function print>"):
        spmdguard.deferring(print)  # type: ignore[arg-type]  # the error under test


def test_rank_comes_from_the_launcher_before_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a process group, rank and local rank are the launcher's; a single process is the main one."""
    for name in (*world_module._RANK_VARIABLES, *world_module._LOCAL_RANK_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    assert spmdguard.is_main_process()
    monkeypatch.setenv("SLURM_PROCID", "3")
    assert not spmdguard.is_main_process()
    monkeypatch.setenv("RANK", "0")
    assert spmdguard.is_main_process()
