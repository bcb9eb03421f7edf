"""Numbers that each rank lowers until its own memory suffices."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

CODES = ("SPG202", "SPG401", "SPG402")


def test_rounds_by_the_size_that_fits() -> None:
    """A size that was halved until memory sufficed decides about branches, counts of rounds and loaders."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def probe(step, size):
            while size > 0:
                try:
                    step(size)
                    return size
                except torch.cuda.OutOfMemoryError:
                    size //= 2
            raise RuntimeError("nothing fits")

        def by_message(step):
            for size in (64, 32, 16):
                try:
                    step(size)
                except RuntimeError as error:
                    if "out of memory" not in str(error):
                        raise
                    continue
                return size

        def chunked(step, rows):
            for _ in range(rows // probe(step, 64)):
                dist.barrier()  # SPG401

        def loaded(step, data):
            for batch in DataLoader(data, batch_size=by_message(step)):
                dist.all_reduce(batch)  # SPG401

        def left(step, size, rows):
            while True:
                try:
                    step(size)
                    break
                except torch.OutOfMemoryError:
                    size -= 8
            if size > 32:
                dist.barrier()  # SPG202

        def probed(step, size):
            try:
                step(size)
                return True
            except torch.cuda.OutOfMemoryError:
                return False

        def asked(step, size, rows):
            while not probed(step, size):
                size //= 2
            for _ in range(rows // size):
                dist.barrier()  # SPG401
        """,
        *CODES,
    )


def test_a_size_that_ranks_agree_on() -> None:
    """The least of all sizes, a size that no loop has changed, and one that a failure never leaves are the same."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def probe(step, size, rows):
            while size > 0:
                try:
                    step(size)
                    return size
                except torch.cuda.OutOfMemoryError:
                    size //= 2
            return 0

        def least(step, rows):
            size = torch.tensor(probe(step, 64, rows))
            dist.all_reduce(size, op=dist.ReduceOp.MIN)
            for _ in range(rows // int(size.item())):
                dist.barrier()

        def unchanged(step, size, rows):
            tried = size
            while True:
                try:
                    step(tried)
                    return rows
                except torch.cuda.OutOfMemoryError:
                    tried //= 2

        def ended(step, rows):
            for _ in range(unchanged(step, 64, rows)):
                dist.barrier()

        def voted(step, size, rows):
            while size:
                failed = torch.zeros(1)
                try:
                    step(size)
                except torch.cuda.OutOfMemoryError:
                    failed += 1
                dist.all_reduce(failed, op=dist.ReduceOp.MAX)
                if failed.item():
                    size //= 2
                    continue
                return size

        def behind_a_vote(step, size, rows):
            for _ in range(3):
                size = voted(step, size, rows)
            for _ in range(size):
                dist.barrier()

        def probed(step, size):
            try:
                step(size)
                return 1
            except torch.cuda.OutOfMemoryError:
                return 0

        def asked(step, size, rows):
            fits = torch.zeros(1)
            while not fits.item():
                size //= 2
                fits = torch.tensor(probed(step, size))
                dist.all_reduce(fits, op=dist.ReduceOp.MIN)
            for _ in range(rows // size):
                dist.barrier()

        def raised(step, sizes):
            for size in sizes:
                try:
                    step(size)
                    return size
                except torch.cuda.OutOfMemoryError:
                    print("too large")
                    raise
        """,
        *CODES,
    )


@pytest.mark.parametrize("padding", ["", ", apply_padding=True"])
def test_shares_of_split_between_processes(padding: str) -> None:
    """Some processes get an item more, unless shares are padded or what is split is a multiple of their number."""
    mark = "" if padding else "  # SPG401"
    assert agree(
        f"""
        from accelerate import Accelerator, PartialState
        from accelerate.utils import gather_object

        def each(prompts, answer):
            state = PartialState()
            with state.split_between_processes(prompts{padding}) as share:
                for prompt in share:
                    gather_object([answer(prompt)]){mark}

        class Scorer:
            def __init__(self):
                self.accelerator = Accelerator()

            def run(self, prompts, answer):
                with self.accelerator.split_between_processes(prompts{padding}) as mine:
                    for number in range(len(mine)):
                        self.accelerator.gather(answer(mine[number])){mark}

        def together(prompts, answer):
            state = PartialState()
            with state.split_between_processes(prompts{padding}) as share:
                found = [answer(prompt) for prompt in share]
            return gather_object(found)

        def full(prompts, answer):
            state = PartialState()
            usable = len(prompts) // state.num_processes * state.num_processes
            with state.split_between_processes(prompts[:usable]{padding}) as share:
                for prompt in share:
                    gather_object([answer(prompt)])
        """,
        *CODES,
    )
