"""SPG110: messages beside collectives that are begun and waited for later."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_a_receive_against_a_collective_that_was_begun() -> None:
    """One rank waits for a message, its sender for a collective that the first has not begun."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def in_one_wait(word):
            rank = dist.get_rank()
            if rank == 0:
                job = dist.irecv(word, src=1)
            else:
                job = dist.barrier(async_op=True)
            job.wait()  # SPG110
            if rank == 1:
                dist.send(word, dst=0)
            if rank == 0:
                dist.barrier()

        def in_two_places(word, total):
            if dist.get_rank() == 0:
                dist.recv(word, src=1)  # SPG110
                dist.all_reduce(total)
            elif dist.get_rank() == 1:
                work = dist.all_reduce(total, async_op=True)
                work.wait()
                dist.send(word, dst=0)
            else:
                dist.all_reduce(total)
        """,
        "SPG110",
    )


def test_collectives_that_end_behind_the_messages() -> None:
    """Begun before and waited for behind, begun on all ranks first, and a wait that comes behind the send."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def begun_first(word):
            rank = dist.get_rank()
            work = dist.barrier(async_op=True)
            if rank == 0:
                dist.recv(word, src=1)
            elif rank == 1:
                work.wait()
                dist.send(word, dst=0)
            work.wait()

        def wait_behind(word, total):
            rank = dist.get_rank()
            if rank == 0:
                dist.recv(word, src=1)
                dist.all_reduce(total)
            elif rank == 1:
                work = dist.all_reduce(total, async_op=True)
                dist.send(word, dst=0)
                work.wait()
            else:
                dist.all_reduce(total)

        def kept(word):
            job = None
            if dist.get_rank() == 0:
                job = dist.irecv(word, src=1)
            dist.barrier()
            if dist.get_rank() == 1:
                dist.send(word, dst=0)
            if job is not None:
                job.wait()

        def perhaps(word, later):
            work = dist.barrier(async_op=later)
            if dist.get_rank() == 0:
                dist.recv(word, src=1)
            elif dist.get_rank() == 1:
                dist.send(word, dst=0)
            if work is not None:
                work.wait()
        """,
        "SPG110",
    )
