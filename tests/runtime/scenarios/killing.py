"""One process that is killed right before each call that touches files, in turn; runs without torch."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import spmdguard


def write_note(path: Path, step: int) -> None:
    (path / "note.txt").write_text(f"step {step}")


def kill_at_every_call() -> None:
    """For each call that touches files while a step is saved: a child is killed right before it."""
    number, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        number += 1
        folder = f"kill{number}"
        saved = save_in_child(folder, number)
        code, reached = saved
        found = spmdguard.latest_checkpoint(folder, checksum=True)
        assert found is not None
        note = (found / "note.txt").read_text()
        assert int(found.name[5:13]) >= reached, (number, found, reached)
        assert note == f"step {int(found.name[5:13])}", (number, found, note)
        save_note(folder, 9)
        assert sorted(os.listdir(folder)) == [".spmdguard-latest", "step-00000009"], os.listdir(folder)
    print("code", code, "kills", number - 1)


def save_note(folder: str, step: int) -> None:
    spmdguard.save_checkpoint(
        folder,
        step=step,
        save_state=lambda path: write_note(path, step),
        write_metadata=lambda path: (path / "meta").mkdir(),
        keep_last=1,
        checksum=True,
    )


def save_in_child(folder: str, number: int) -> tuple[int, int]:
    """Exit code and last step saved of a child that is killed at its ``number``-th call."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        save_note(folder, 1)
        os.write(writing, b"1")
        die_at(number)
        for step in (2, 2):
            save_note(folder, step)
            os.write(writing, str(step).encode())
        os._exit(0)
    os.close(writing)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said = os.read(reading, 100)
    os.close(reading)
    return code, int(said[-1:])


def die_at(number: int) -> None:
    """Kill this process right before its ``number``-th call that opens, syncs, renames, makes or deletes."""
    seen = 0

    def count(event: str, arguments: Any = ()) -> None:
        nonlocal seen
        if event == "open" or event.startswith(("os.", "shutil.")):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    fsync = os.fsync

    def counted_fsync(descriptor: int) -> None:
        count("os.fsync")
        fsync(descriptor)

    os.fsync = counted_fsync
    sys.addaudithook(count)


if __name__ == "__main__":
    kill_at_every_call()
