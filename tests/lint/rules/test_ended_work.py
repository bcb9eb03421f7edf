"""Work under way, from which a method takes what has ended: whether any is left is each rank's own affair."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG102", "SPG305", "SPG401")
WRITERS = """
        import multiprocessing
        from dataclasses import dataclass, field

        import torch.distributed as dist

        class Writers:
            def __init__(self):
                self.pending = []

            def submit(self, target):
                process = multiprocessing.Process(target=target)
                process.start()
                self.pending.append(process)

            def reap(self):
                {reap}

            def drain(self, bad):
                for process in self.pending:
                    process.join()
                self.pending = []
                dist.all_reduce(bad)

        class Manager:
            def __init__(self, model):
                self.writers = Writers()

            def wait(self, bad):
                if not self.writers.pending:
                    return{left}
                self.writers.drain(bad)

            def close(self, bad):
                if len(self.writers.pending) > 0:
                    self.writers.drain(bad){branch}
"""


def test_work_that_has_ended_is_taken_out() -> None:
    """By a new list, in a loop, in place, from the front, and through a look at the exit code."""
    for reap in (
        "self.pending = [p for p in self.pending if p.is_alive()]",
        "alive = []\n                for p in self.pending:\n                    if p.is_alive():\n"
        "                        alive.append(p)\n                self.pending = alive",
        "for p in list(self.pending):\n                    if p.poll() is not None:\n"
        "                        self.pending.remove(p)",
        "while self.pending and self.pending[0].done():\n                    self.pending.pop(0)",
        "self.pending = [p for p in self.pending if p.exitcode is None]",
    ):
        assert agree(WRITERS.format(reap=reap, left="  # SPG102", branch="  # SPG305"), *RULES)


def test_work_that_is_waited_for() -> None:
    """Nothing is taken out before all ranks meet; a question about something else; a list that is only looked at."""
    for reap in (
        "pass",
        "return [p.name for p in self.pending if p.is_alive()]",
        "done = [p for p in self.others if not p.is_alive()]\n                self.others = done",
        "for p in self.pending:\n                    p.join()\n                self.pending = []",
        "self.pending = [p for p in self.pending if p.name]",
    ):
        assert agree(WRITERS.format(reap=reap, left="", branch=""), *RULES)


def test_ranks_that_agree_on_what_is_left() -> None:
    """The number of items is reduced before it decides."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Queue:
            def __init__(self):
                self.futures = []

            def poll(self):
                self.futures = [f for f in self.futures if not f.done()]

            def alone(self, x):
                if self.futures:
                    dist.all_reduce(x)  # SPG305

            def agreed(self, x):
                left = torch.tensor([len(self.futures)])
                dist.all_reduce(left, op=dist.ReduceOp.MAX)
                if left.item() > 0:
                    dist.all_reduce(x)
        """,
        *RULES,
    )
