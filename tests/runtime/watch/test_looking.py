"""Looking at this process from another thread: places, whether it moves, whether it communicates."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spmdguard.watch.limits import Limits
from spmdguard.watch.looking import kind_of_file, last_seen, look_at, places_of, places_of_traceback
from spmdguard.watch.native import NativeWatchdog, read_stacks
from spmdguard.watch.observer import Observer
from spmdguard.watch.standing import Place

from .making import call, place


class Sleeper:
    """A thread that waits in a function of a known name, and moves on when it is told."""

    def __init__(self) -> None:
        self.go, self.moved, self.end = threading.Event(), threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.wait_here, daemon=True)
        self.thread.start()
        assert self.thread.ident is not None
        self.ident = self.thread.ident

    def wait_here(self) -> None:
        self.go.wait(60)
        self.moved.set()
        self.end.wait(60)


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    made = Sleeper()
    yield made
    made.go.set()
    made.end.set()
    made.thread.join(60)


def wait_until_at(ident: int, name: str) -> None:
    for _ in range(100_000):
        look = look_at(ident)
        if look is not None and look.places and look.places[0].function == name:
            return
    raise AssertionError(f"the thread never came to {name}")


def test_the_last_recorded_call_tells_where_a_rank_was() -> None:
    """The newest call with a line of the program counts; without one nothing is known."""
    recorded = [
        call(1, "all_reduce", 10),
        call(2, "barrier", 20),
        replace(call(3, "broadcast", 1), places=()),
    ]
    assert last_seen(recorded) == (place(20),)
    assert last_seen([]) == ()


def test_a_file_that_cannot_be_read_is_the_place(tmp_path: Path) -> None:
    """Of a syntax error the line of the broken file is the innermost place, whoever imports it."""
    broken = tmp_path / "broken.py"
    try:
        compile("x = (", str(broken), "exec")
    except SyntaxError as wrong:
        found = places_of_traceback(wrong)
    assert found[0] == Place(str(broken), 1, "<module>")


def test_a_look_tells_the_users_line(sleeper: Sleeper) -> None:
    """The innermost place is the user's own line, although the thread is inside the library."""
    wait_until_at(sleeper.ident, "wait_here")
    look = look_at(sleeper.ident)
    assert look is not None
    lines = Path(__file__).read_text().split("\n")
    assert "self.go.wait(60)" in lines[look.places[0].line - 1]
    assert look.operation == ""


def test_two_looks_tell_whether_the_thread_moved(sleeper: Sleeper) -> None:
    """The mark stays while a thread waits, and changes when it goes on."""
    wait_until_at(sleeper.ident, "wait_here")
    first, second = look_at(sleeper.ident), look_at(sleeper.ident)
    sleeper.go.set()
    assert sleeper.moved.wait(60)
    third = look_at(sleeper.ident)
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.mark == second.mark != third.mark


def test_a_thread_that_is_gone_has_no_look() -> None:
    """A number that names no thread gives None."""
    assert look_at(12345) is None


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/x/site-packages/torch/distributed/distributed_c10d.py", "communication"),
        ("/x/torch/nn/parallel/distributed.py", "communication"),
        ("/x/spmdguard/group/same_host.py", "communication"),
        ("/x/torch/distributed/run.py", "library"),
        ("/x/torch/autograd/graph.py", "library"),
        (threading.__file__, "library"),
        (pytest.__file__, "library"),
        ("/home/me/train.py", "user"),
        ("<string>", "library"),
    ],
)
def test_files_are_told_apart(file: str, kind: str) -> None:
    """torch's communication, other libraries, and the user's own files."""
    assert kind_of_file(file) == kind


def test_recorded_frames_are_the_users() -> None:
    """Of a recorded stack the user's frames stay, innermost first; without one, the innermost of all."""
    library = ("/x/torch/distributed/distributed_c10d.py", 10, "all_reduce")
    assert places_of([library, ("/u/train.py", 5, "step"), ("/u/train.py", 9, "main")]) == (
        Place("/u/train.py", 5, "step"),
        Place("/u/train.py", 9, "main"),
    )
    assert places_of([library]) == (Place(*library),)


def test_an_exception_is_placed_where_it_was_raised() -> None:
    """The innermost place of a traceback is the line that raised."""

    def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError) as caught:
        fail()
    places = places_of_traceback(caught.value)
    assert [place.function for place in places][:2] == [
        "fail",
        "test_an_exception_is_placed_where_it_was_raised",
    ]


def test_an_observer_measures_how_long_it_stands() -> None:
    """While the main thread does not move its age grows by the clock; what it does is not waiting."""
    now = [100.0]
    observer = Observer(
        rank=3, local_rank=1, host="a", limits=Limits(), find_step=lambda: 7, now=lambda: now[0]
    )
    changes: list[bool] = []

    def look_twice() -> None:
        changes.append(observer.look())
        now[0] += 2.5
        changes.append(observer.look())

    thread = threading.Thread(target=look_twice)
    thread.start()
    thread.join(60)  # the main thread stands here
    assert changes[0]
    assert (observer.standing.rank, observer.standing.state, observer.standing.step) == (3, "running", 7)
    assert observer.standing.since_s in (0.0, 2.5)
    assert observer.waited_s() == 0.0


def test_a_dump_of_stacks_gives_the_main_threads_places(tmp_path: Path) -> None:
    """Of a dump with several threads the last one, the main thread's, is read; garbage is nothing."""
    (tmp_path / "stacks-0").write_text(
        'Timeout (0:00:01)!\nThread 0x01 (most recent call first):\n  File "/u/other.py", line 3 in wait\n\n'
        'Thread 0x02 (most recent call first):\n  File "/x/torch/cuda.py", line 9 in sync\n'
        '  File "/u/train.py", line 12 in step\n  File "/u/train.py", line 40 in <module>\n'
    )
    assert read_stacks(tmp_path, 0) == (
        Place("/u/train.py", 12, "step"),
        Place("/u/train.py", 40, "<module>"),
    )
    (tmp_path / "stacks-1").write_bytes(b"\xff\x00Thread 0x\x1b[2J")
    assert (read_stacks(tmp_path, 1), read_stacks(tmp_path, 2)) == ((), ())


def test_a_program_keeps_a_watchdog_of_its_own(tmp_path: Path) -> None:
    """Where the program arms faulthandler's watchdog, ours is off; afterwards Python's functions are back."""
    import faulthandler

    original = faulthandler.dump_traceback_later
    watchdog = NativeWatchdog(tmp_path, 0)
    try:
        watchdog.arm()
        with (tmp_path / "own").open("w") as file:
            faulthandler.dump_traceback_later(600, file=file)
            watchdog.arm()
            assert not watchdog._on
            faulthandler.cancel_dump_traceback_later()
    finally:
        watchdog.close()
    assert faulthandler.dump_traceback_later is original
