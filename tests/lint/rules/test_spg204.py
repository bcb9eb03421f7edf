"""SPG204: the hand-written "main process first" without a finally."""

from __future__ import annotations

from tests.lint.rules.marked import agree

FIRST = ("SPG101", "SPG102", "SPG204", "SPG206")


def test_unprotected_work_between_the_barriers() -> None:
    """In a function, in a context manager, with a flag, with the local rank."""
    assert agree(
        """
        from contextlib import contextmanager
        import os
        import torch.distributed as dist

        def by_rank(fetch):
            if dist.get_rank() != 0:
                dist.barrier()
            data = fetch()
            if dist.get_rank() == 0:
                dist.barrier()  # SPG204
            return data

        def by_flag(load):
            is_first = dist.get_rank() == 0
            if not is_first:
                dist.barrier()
            load()
            if is_first:
                dist.barrier()  # SPG204

        def by_local_rank(path):
            local_rank = int(os.environ["LOCAL_RANK"])
            if local_rank > 0:
                dist.barrier()
            text = open(path).read()
            if local_rank == 0:
                dist.barrier()  # SPG204
            return text

        @contextmanager
        def main_first():
            if dist.get_rank() > 0:
                dist.barrier()
            yield
            if dist.get_rank() == 0:
                dist.barrier()  # SPG204
        """,
        *FIRST,
    )


def test_barriers_of_helpers_under_one_question() -> None:
    """The barrier stands in a helper with several forms of it; the caller asks who is first, and nobody knows how."""
    assert agree(
        """
        from contextlib import contextmanager
        import os
        import torch.distributed as dist

        def meet():
            if dist.is_initialized():
                if os.environ.get("BIND"):
                    dist.barrier(device_ids=[0])  # SPG204
                else:
                    dist.barrier()

        def is_first(state):
            return dist.get_rank() == 0 if state.distributed else state.chosen

        @contextmanager
        def first(is_main):
            if not is_main:
                meet()
            yield
            if is_main:
                meet()

        def prepare(rows, clean, state):
            with first(is_first(state)):
                return rows.map(clean)
        """,
        *FIRST,
    )


def test_protected_or_harmless_is_silent() -> None:
    """A finally, a library's context manager, nothing between the barriers."""
    assert agree(
        """
        from contextlib import contextmanager
        import torch.distributed as dist
        from accelerate import Accelerator

        def protected(fetch):
            if dist.get_rank() != 0:
                dist.barrier()
            try:
                fetch()
            finally:
                if dist.get_rank() == 0:
                    dist.barrier()

        @contextmanager
        def main_first():
            if dist.get_rank() > 0:
                dist.barrier()
            try:
                yield
            finally:
                if dist.get_rank() == 0:
                    dist.barrier()

        def library(accelerator: Accelerator, fetch):
            with accelerator.main_process_first():
                fetch()

        def nothing_between(x):
            if dist.get_rank() != 0:
                dist.barrier()
            y = x + 1
            if dist.get_rank() == 0:
                dist.barrier()
            return y
        """,
        *FIRST,
    )
