"""SPG608: programs that never destroy their group."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_never() -> None:
    """A program without a destruction is reported at its init call."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main():
            dist.init_process_group("gloo")  # SPG608
            dist.barrier()

        main()
        """,
        "SPG608",
    )


def test_destroyed() -> None:
    """A destruction anywhere in the project is silent."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        import atexit

        def main():
            dist.init_process_group("gloo")
            atexit.register(dist.destroy_process_group)
            dist.barrier()

        main()
        """,
        "SPG608",
    )


def test_miss_destroyed_in_another_program() -> None:
    """Known miss: a mention of the destruction in code that this program never runs."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def never():
            dist.destroy_process_group()

        def main():
            dist.init_process_group("gloo")

        main()
        """,
        "SPG608",
    )
