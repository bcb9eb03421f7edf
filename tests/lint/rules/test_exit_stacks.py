"""Exit stacks: functions and managers that are pushed run when the stack is closed."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105")


def test_exit_functions_on_some_ranks() -> None:
    """An exit function with a barrier, pushed by one rank; one that all push, and one that cleans up, are silent."""
    assert agree(
        """
        import contextlib

        import torch.distributed as dist

        def fence(kind, value, trace):
            if kind is None:
                dist.barrier()  # SPG104

        def note(kind, value, trace):
            if kind is not None:
                print(kind)

        class Gate:
            def __enter__(self):
                return self

            def __exit__(self, *exc):
                dist.barrier()

        def by_function(x):
            with contextlib.ExitStack() as stack:
                if dist.get_rank() == 0:
                    stack.push(fence)
                dist.all_reduce(x)

        def by_manager(x):
            with contextlib.ExitStack() as stack:
                if dist.get_rank() == 0:
                    stack.push(Gate())  # SPG104
                dist.all_reduce(x)

        async def wait(kind, value, trace):
            dist.barrier()  # SPG104

        async def by_coroutine(x):
            async with contextlib.AsyncExitStack() as stack:
                if dist.get_rank() == 0:
                    stack.push_async_exit(wait)
                dist.all_reduce(x)

        def on_all(x):
            with contextlib.ExitStack() as stack:
                stack.push(fence)
                if dist.get_rank() == 0:
                    stack.push(note)
                stack.push(Gate())
                dist.all_reduce(x)
        """,
        *ARMS,
    )
