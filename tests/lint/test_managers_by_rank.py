"""A context manager that the rank chooses, inside a function that is a context manager itself."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_the_block_stands_in_both_managers() -> None:
    """Rank 0 makes a folder, the others enter nothing; the caller's block runs at the one `yield` on all of them."""
    assert agree(
        """
        import tempfile
        from contextlib import contextmanager, nullcontext

        import torch.distributed as dist

        @contextmanager
        def shared():
            make = tempfile.TemporaryDirectory if dist.get_rank() == 0 else nullcontext
            with make() as folder:
                found = [folder]
                dist.broadcast_object_list(found, src=0)
                yield found[0]
                dist.barrier()

        def save(x):
            with shared():
                dist.all_reduce(x)

        @contextmanager
        def one_sided(x):
            with tempfile.TemporaryDirectory() if dist.get_rank() == 0 else nullcontext() as folder:
                if dist.get_rank() == 0:
                    dist.barrier()  # SPG101
                yield folder

        def save_with(x):
            with one_sided(x):
                dist.all_reduce(x)
        """,
        "SPG101",
        "SPG103",
    )


def test_composer_waits_for_a_file() -> None:
    """`local_rank_zero_download_and_wait` looks for a file; the other manager has a barrier."""
    assert agree(
        """
        from composer.utils import dist

        def by_file(signal):
            if dist.get_local_rank() != 0:
                with dist.local_rank_zero_download_and_wait(signal):
                    pass
            dist.barrier()

        def by_barrier():
            if dist.get_local_rank() != 0:
                with dist.run_local_rank_zero_first():  # SPG101
                    pass
            dist.barrier()
        """,
        "SPG101",
    )
