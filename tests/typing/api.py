"""The types that users see; checked by ``mypy --strict`` and never run (see ``test_typing.py``)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

from typing_extensions import assert_type

import spmdguard


@spmdguard.rank_local
def plain(a: int, *, b: str = "") -> float:
    return a + len(b)


@spmdguard.rank_local(default=0, only="main", name="counting")
def with_default(a: int) -> int:
    return a


@spmdguard.rank_local(only="local_main")
def without_default(a: int) -> int:
    return a


@spmdguard.rank_local
async def coroutine(a: int) -> str:
    return str(a)


@spmdguard.rank_local(default=0)
async def coroutine_with_default(a: int) -> str:
    return str(a)


@spmdguard.rank_local
def generator() -> Generator[int, str, bytes]:
    yield 1
    return b""


@spmdguard.rank_local
async def async_generator() -> AsyncGenerator[int, None]:
    yield 1


class Tracker:
    @spmdguard.rank_local
    def log(self, value: float) -> bool:
        return value > 0

    @staticmethod
    @spmdguard.rank_local
    def static(value: float) -> bool:
        return value > 0

    @property
    @spmdguard.rank_local
    def url(self) -> str:
        return ""


@spmdguard.collective
def reduce(a: int) -> float:
    return float(a)


@spmdguard.collective(name="gather")
async def gather(a: int) -> list[int]:
    return [a]


def decorated() -> None:
    assert_type(plain(1, b="x"), float | None)
    assert_type(with_default(1), int)
    assert_type(without_default(1), int | None)
    assert_type(generator(), Generator[int, str, bytes | None])
    assert_type(async_generator(), AsyncGenerator[int, None])
    assert_type(Tracker().log(1.0), bool | None)
    assert_type(Tracker.static(1.0), bool | None)
    assert_type(Tracker().url, str | None)
    assert_type(reduce(1), float)
    plain("x")  # type: ignore[arg-type]  # arguments are checked
    reduce()  # type: ignore[call-arg]  # arguments are checked


async def awaited() -> None:
    assert_type(await coroutine(1), str | None)
    assert_type(await coroutine_with_default(1), str | int)
    assert_type(await gather(1), list[int])


def guarded(tracker: Tracker) -> None:
    assert_type(spmdguard.rank_local_object(tracker), Tracker)
    assert_type(spmdguard.rank_local_object(make=Tracker, only="main"), Tracker)
    spmdguard.rank_local_object(tracker, only="all")  # type: ignore[call-overload]  # no such ranks


@spmdguard.fail_fast
def never_recovers(a: int) -> str:
    return str(a)


@spmdguard.fail_fast(errors="out of memory", timeout=3)
def may_run_out(a: int) -> str:
    return str(a)


def ended() -> None:
    assert_type(never_recovers(1), str)
    assert_type(may_run_out(1), str)
    with spmdguard.fail_fast(errors=(OSError, ValueError)) as guard:
        assert_type(guard, spmdguard.FailFast)
    assert_type(spmdguard.fail_fast().install(), spmdguard.FailFast)
    spmdguard.fail_fast(errors="memory")  # type: ignore[call-overload]  # no such kind


@spmdguard.strict_mode(error=True)
def watched(a: int) -> str:
    return str(a)


def seen() -> None:
    assert_type(watched(1), str)
    with spmdguard.strict_mode() as report:
        pass
    assert_type(report.main_only, tuple[spmdguard.Sighting, ...])


def deferred() -> None:
    assert_type(spmdguard.try_or_defer(int, "3"), int | None)
    spmdguard.try_or_defer(reduce, "x")  # type: ignore[arg-type]  # arguments are checked
    with spmdguard.deferring("write metadata"):
        maybe = 1
    spmdguard.defer_error(OSError())
    spmdguard.defer_error(KeyboardInterrupt())  # type: ignore[arg-type]  # never deferred
    assert_type(spmdguard.has_deferred_error(), bool)
    assert_type(spmdguard.deferred_error(), Exception | None)
    assert_type(maybe, int)
    spmdguard.raise_if_deferred_error()


def agreed() -> None:
    assert_type(spmdguard.sync_should_stop(), bool)
    assert_type(spmdguard.sync_should_stop(True, every_n_steps=10, overlap=True, group=None), bool)
    spmdguard.sync_should_stop(True, 10)  # type: ignore[call-arg]  # options are keyword-only
    reason = spmdguard.stop_reason()
    assert_type(reason, spmdguard.StopReason | None)
    if reason is not None:
        assert_type(reason.ranks, tuple[int, ...])
        assert_type(reason.texts, dict[int, str])
    with spmdguard.stop_on_signal(15, 10) as source:
        assert_type(source, spmdguard.StopSource)
        assert_type(source.asks, bool)
    spmdguard.stop_after(timedelta(hours=4)).close()
    spmdguard.stop_after("4h")  # type: ignore[arg-type]  # seconds or a timedelta
    spmdguard.barrier("x")
    spmdguard.start_watch(stall_limit=timedelta(minutes=5), report_dir="reports", abort=False)
    spmdguard.start_watch(stall_limit="5")  # type: ignore[arg-type]  # seconds or a timedelta
    with spmdguard.phase("evaluation"):
        pass
    with spmdguard.main_process_first(local=True):
        assert_type(spmdguard.is_main_process(), bool)


def lived(make_reporter: Callable[[], AbstractContextManager[object]]) -> None:
    assert_type(spmdguard.run(lambda: 3), int)
    assert_type(spmdguard.run(lambda: "x", post_train=print, reporter=make_reporter, teardown_timeout=3), str)
    assert_type(spmdguard.run(reporter=nullcontext()), spmdguard.Run)
    with spmdguard.run(teardown_timeout=timedelta(seconds=3), exit_process=True):
        pass
    spmdguard.run(3)  # type: ignore[call-overload]  # not callable
    spmdguard.destroy_process_group(timedelta(seconds=3))
    assert_type(int(spmdguard.ExitCode.FAILED), int)


def launched() -> None:
    launch = spmdguard.init_process_group(
        "gloo",
        timeout=60,
        first_step_timeout=timedelta(minutes=30),
        handshake_timeout=300.0,
        allow=["script"],
    )
    assert_type(launch, spmdguard.Launched)
    assert_type(launch.world_size, int)
    assert_type(launch.notes, tuple[str, ...])
    assert_type(spmdguard.handshake(timedelta(seconds=3)), spmdguard.Launched)
    spmdguard.init_process_group("gloo", 60)  # type: ignore[call-arg]  # options are keyword-only
    spmdguard.first_step_done()


@spmdguard.run()
def main(argument: int) -> str:
    return str(argument)


assert_type(main(1), str)
