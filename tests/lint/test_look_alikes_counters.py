"""A module's counter of what is under way switches collectives off while one rank works alone."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
        import os
        import torch.distributed as dist

        ALONE = 0

        def barrier():
            if ALONE >= 1:
                return
            dist.barrier()

        class Alone:
            def __enter__(self):
                global ALONE
                ALONE += 1

            def __exit__(self, *exc):
                global ALONE
                ALONE -= 1

        def run_on_main(function, *args):
            with Alone():
                if dist.get_rank() == 0:
                    function(*args)
            barrier()
"""


def test_counted_up_and_down() -> None:
    """Inside the block the barrier is none, behind it it is one, in whatever function the block is met."""
    assert agree(
        HEAD
        + """
        def prepare(folder):
            if not os.path.isfile(folder):
                barrier()

        def main():
            run_on_main(prepare, "x")

        def outside():
            if dist.get_rank() == 0:
                barrier()  # SPG104

        def behind():
            with Alone():
                barrier()
            if dist.get_rank() == 0:
                barrier()  # SPG104
        """,
        "SPG101",
        "SPG104",
        "SPG304",
    )


def test_called_without_the_counter() -> None:
    """What runs on one rank without going through the counter waits in the barrier."""
    assert agree(
        HEAD
        + """
        def prepare(folder):
            barrier()

        def by_hand():
            if dist.get_rank() == 0:
                prepare("x")  # SPG104
        """,
        "SPG101",
        "SPG104",
    )
