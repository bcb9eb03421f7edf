"""How a process ended that said nothing: its signal or exit code, and where a fatal signal met it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from spmdguard.watch.board import process_state
from spmdguard.watch.fatal import find_end, read_fatal

ABORTS = """
import ctypes, sys, threading
from pathlib import Path
from spmdguard.watch.fatal import FatalRecord

record = FatalRecord(Path(sys.argv[1]), 3)

def wait():
    threading.Event().wait(20)

thread = threading.Timer(0.1, ctypes.CDLL(None).abort)
thread.start()
wait()
"""


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        ("import os; os._exit(3)", "exit code 3"),
        ("import time; time.sleep(20)", ""),
    ],
)
def test_the_end_is_read_before_the_parent_asks(text: str, end: str) -> None:
    """A process that has ended and was not waited for shows how; one that runs shows nothing."""
    process = subprocess.Popen([sys.executable, "-c", text])
    try:
        deadline_s = time.monotonic() + 20
        while end and process_state(process.pid) != "Z" and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert find_end(process.pid) == end
    finally:
        process.kill()
        process.wait(timeout=20)
    assert find_end(process.pid) == ""


def test_an_abort_on_another_thread_shows_the_main_threads_place(tmp_path: Path) -> None:
    """The main thread's frames are kept in the file, its signal too, and the process still ends by it."""
    script = tmp_path / "aborts.py"
    script.write_text(ABORTS)
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], timeout=60, check=False)
    assert done.returncode == -6
    found = read_fatal(tmp_path, 3)
    assert found is not None
    assert (found.signal, found.operation) == ("SIGABRT", "")
    assert [(place.line, place.function) for place in found.places] == [(9, "wait"), (13, "<module>")]


@pytest.mark.parametrize(
    "text", ["", "Fatal Python error: \x1b[31m\n", "Fatal Python error: Aborted\n\nThread 0x"]
)
def test_any_file_is_read_without_harm(tmp_path: Path, text: str) -> None:
    """A file that is empty, cut off, or somebody else's gives no places."""
    (tmp_path / "fatal-0").write_text(text)
    found = read_fatal(tmp_path, 0)
    assert found is None or found.places == ()
    assert read_fatal(tmp_path, 1) is None
