"""One training with a reporter, checkpoints and post-processing, in which one fault strikes at one place."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

import spmdguard
from spmdguard.checkpoint.agreeing import Partners
from spmdguard.checkpoint.phases import Save
from spmdguard.group.channel import TorchChannel
from spmdguard.reporters import Outcome, Reporter

from .parts import say, start_gloo

CAUSE = "the fault of the matrix"
STOPPED_S = 5.0


class Unpicklable(Exception):
    """Holds what no pickle can."""

    def __init__(self) -> None:
        super().__init__(CAUSE)
        self.held = lambda: None


class TwoArguments(Exception):
    """Cannot be made again from its ``args``."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self.number = number


class Tracker(Reporter):
    """A tracker whose server can go away."""

    down = False

    def _open(self) -> None:
        say("tracker opened")

    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        if self.down:
            raise ConnectionError(CAUSE)

    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        say("tracker:", outcome.status)


class Fault:
    """The fault of this rank, if it has one: strikes once, where its place is reached in step 3."""

    def __init__(self, kind: str, place: str, strikes: bool, tracker: Tracker) -> None:
        self.kind = kind
        self.place = place
        self.armed = strikes
        self.tracker = tracker
        self.step = 0

    def reach(self, place: str) -> None:
        early = place == "before first collective"
        late = place in ("destroy", "post_train")
        if self.armed and place == self.place and (early or late or self.step == 3):
            self.armed = False
            getattr(self, self.kind.replace(" ", "_").replace("-", "_"))()

    def exception(self) -> None:
        raise ValueError(CAUSE)

    def kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def sigterm(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def sigstop(self) -> None:
        """Another process stops this one and lets it go on."""
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.kill(me, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(me, signal.SIGCONT)
            os._exit(0)
        os.waitpid(pid, 0)

    def out_of_memory(self) -> None:
        raise torch.OutOfMemoryError(f"CUDA out of memory: {CAUSE}")

    def full_disk(self) -> None:
        raise OSError(errno.ENOSPC, f"No space left on device: {CAUSE}")

    def read_only_directory(self) -> None:
        """A file stands where the directory should be: it refuses root too."""
        Path(CAUSE).write_text("a file")
        (Path(CAUSE) / "metrics").write_text("x")

    def tracker_down(self) -> None:
        self.tracker.down = True
        self.tracker.log({"loss": 1.0})

    def unpicklable(self) -> None:
        raise Unpicklable

    def two_arguments(self) -> None:
        raise TwoArguments(CAUSE, 2)

    def interrupt(self) -> None:
        raise KeyboardInterrupt(CAUSE)

    def sys_exit(self) -> None:
        sys.exit(3)

    def in_a_thread(self) -> None:
        thread = threading.Thread(target=self.exception)
        thread.start()
        thread.join(10)


def install(fault: Fault) -> None:
    """Let the fault reach places inside of this package and of torch."""

    def before(owner: Any, name: str, place: str, is_due: Callable[[], bool] = lambda: True) -> None:
        original = getattr(owner, name)

        def reached(*args: Any, **kwargs: Any) -> Any:
            if is_due():
                fault.reach(place)
            return original(*args, **kwargs)

        setattr(owner, name, reached)

    exchanges = {"step": 0, "number": 0}

    def closes() -> bool:
        """The second exchange of numbers in a save is the closing one."""
        if exchanges["step"] != fault.step:
            exchanges.update(step=fault.step, number=0)
        exchanges["number"] += 1
        return exchanges["number"] == 2

    before(Save, "_make_folder", "prepare")
    before(Partners, "maximum", "close", closes)
    before(TorchChannel, "barrier", "barrier")
    before(distributed_c10d, "destroy_process_group", "destroy")


def struck(kind: str, place: str, who: list[int]) -> None:
    """The whole life."""
    rank = int(os.environ["RANK"])
    tracker = Tracker()
    fault = Fault(kind, place, rank in who, tracker)
    install(fault)
    spmdguard.stop_on_signal(signal.SIGTERM)
    if kind == "in a thread":
        spmdguard.fail_fast(timeout=5.0).install()
    spmdguard.run(
        lambda: train(fault),
        post_train=lambda: fault.reach("post_train"),
        reporter=tracker,
        teardown_timeout=10.0,
        exit_process=True,
    )


@spmdguard.fail_fast(errors="out of memory", timeout=5.0)
def train(fault: Fault) -> None:
    rank = start_gloo(60.0)
    fault.reach("before first collective")

    @spmdguard.rank_local
    def local(place: str) -> None:
        fault.reach(place)

    @spmdguard.collective
    def together() -> None:
        dist.all_reduce(torch.ones(1))
        fault.reach("inside collective")
        dist.all_reduce(torch.ones(1))

    def save_state(path: Path) -> None:
        fault.reach("save")
        (path / f"rank{rank}").write_text(str(fault.step))

    def write_metadata(path: Path) -> None:
        fault.reach("publish")
        (path / "metadata").write_text(str(fault.step))

    for fault.step in range(2, 5):
        local("rank-local before")
        together()
        local("rank-local after")
        spmdguard.save_checkpoint(
            "saved", step=fault.step, save_state=save_state, write_metadata=write_metadata, keep_last=2
        )
        spmdguard.barrier("end of step")
        if spmdguard.sync_should_stop():
            break
    say("left after step", fault.step)
