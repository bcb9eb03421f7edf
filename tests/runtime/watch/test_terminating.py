"""SIGTERM and the children of a watched process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

CHILDREN = """
import os, signal, sys, time
from spmdguard.watch.terminating import Termination
caught = Termination()
for turn in range(300):
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(3)
    os.kill(child, signal.SIGTERM)
    ended, left_s = 0, 10.0
    while not ended and left_s > 0:
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            time.sleep(0.002)
            left_s -= 0.002
    if not ended:
        os.kill(child, signal.SIGKILL)
        sys.exit(f"child {turn} has not ended")
    if os.waitstatus_to_exitcode(status) != -signal.SIGTERM:
        sys.exit(f"child {turn} ended with {status}")
if caught.was_asked():
    sys.exit("the parent took its child's signal for its own")
if signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
    sys.exit("SIGTERM is still blocked")
caught.close()
print("all ended")
"""


def test_a_forked_child_ends_by_sigterm_however_early_it_comes() -> None:
    """As in a process that nobody watches; the parent keeps its own handling."""
    code = textwrap.dedent(CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "all ended\n"), done.stderr


def test_the_handler_of_the_program_is_left_alone() -> None:
    """A handler installed behind the watch's is inherited by a child, as Python has it."""
    code = textwrap.dedent(
        """
        import os, signal
        from spmdguard.watch.terminating import Termination
        caught = Termination()
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7))
        child = os.fork()
        if child == 0:
            signal.raise_signal(signal.SIGTERM)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    assert signal.getsignal(signal.SIGTERM) is not None
