"""SPG504: checkpoints that one rank finishes with no barrier behind."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_no_barrier() -> None:
    """A rename by one rank after the collective save, and nothing behind it."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        def save(state, work, final):
            dcp.save(state, checkpoint_id=work)
            if dist.get_rank() == 0:
                os.replace(work, final)  # SPG504
        """,
        "SPG504",
    )


def test_barrier_behind() -> None:
    """A barrier or collective behind it is silent."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        def save(state, work, final):
            dcp.save(state, checkpoint_id=work)
            if dist.get_rank() == 0:
                os.replace(work, final)
            dist.barrier()
        """,
        "SPG504",
    )


def test_miss_all_ranks() -> None:
    """Known miss: steps that are not under a test of the rank."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        def save(state, work, final):
            dcp.save(state, checkpoint_id=work)
            os.replace(work, final)
        """,
        "SPG504",
    )
