"""SPG606: work between the destruction of the group and the raise of the kept error."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_work_first() -> None:
    """A function or file operation before the raise is reported."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        import spmdguard as sg

        def evaluate(path):
            with open(path, "w") as out:
                out.write("x")

        def main(lead):
            dist.barrier()
            dist.destroy_process_group()
            if lead:
                evaluate("x")  # SPG606
                sg.raise_if_deferred_error()

        def inline(lead):
            dist.destroy_process_group()
            torch.save({}, "x.pt")  # SPG606
            sg.raise_if_deferred_error()
        """,
        "SPG606",
    )


def test_error_first() -> None:
    """The raise first, prints, and work before the destruction are silent."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        import spmdguard as sg

        def evaluate(path):
            with open(path, "w") as out:
                out.write("x")

        def main(lead):
            evaluate("x")
            dist.barrier()
            dist.destroy_process_group()
            if lead:
                print("over")
                sg.raise_if_deferred_error()
                evaluate("x")
        """,
        "SPG606",
    )


def test_other_arm() -> None:
    """Work of a run that raises nothing later is no work before the raise."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        import spmdguard as sg

        def evaluate(path):
            with open(path, "w") as out:
                out.write("x")

        def main(failed):
            dist.destroy_process_group()
            if failed:
                sg.raise_if_deferred_error()
            else:
                evaluate("x")
        """,
        "SPG606",
    )


def test_miss_work_of_a_library() -> None:
    """Known miss: work of a library that is not known to touch files."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        import spmdguard as sg

        def evaluate(path):
            with open(path, "w") as out:
                out.write("x")

        def main(trainer):
            dist.destroy_process_group()
            trainer.evaluate()
            sg.raise_if_deferred_error()
        """,
        "SPG606",
    )
