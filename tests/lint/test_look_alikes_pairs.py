"""Halves that belong together, where the ranks part at another place: that place alone is reported."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG103", "SPG104")


def test_block_of_the_first_process_before_a_defect() -> None:
    """The manager lets the others in when the first process is through, whatever stands behind the block or before."""
    assert agree(
        """
        from accelerate import Accelerator

        def behind(args, data):
            accelerator = Accelerator()
            with accelerator.main_process_first():
                data = data.map(args.tokenize)
            for batch in data:
                accelerator.backward(batch)
                if accelerator.sync_gradients:
                    if accelerator.is_main_process:
                        accelerator.save_state("a")  # SPG101

        def before(args, data):
            accelerator = Accelerator()
            if accelerator.is_main_process:
                accelerator.save_state("a")  # SPG101
            with accelerator.main_process_first():
                data = data.map(args.tokenize)
            return data

        def inside(args, data):
            accelerator = Accelerator()
            with accelerator.main_process_first():  # SPG101
                if accelerator.is_main_process:
                    accelerator.wait_for_everyone()  # SPG101
            return data
        """,
        *CODES,
    )


def test_halves_before_a_defect() -> None:
    """Two barriers under opposite tests are one for each rank; a third half has no other."""
    assert agree(
        """
        import torch.distributed as dist

        def first(x):
            rank = dist.get_rank()
            if rank != 0:
                dist.barrier()
            x.prepare()
            if rank == 0:
                dist.barrier()
            if rank == 0:
                dist.all_reduce(x)  # SPG101

        def wait_first():
            if dist.get_rank() != 0:
                dist.barrier()

        def wait_after():
            if dist.get_rank() == 0:
                dist.barrier()

        def in_helpers(x):
            wait_first()
            x.prepare()
            wait_after()
            if dist.get_rank() == 0:
                dist.all_reduce(x)  # SPG101

        def third_half(x):
            rank = dist.get_rank()
            if rank != 0:
                dist.barrier()
            x.prepare()
            if rank == 0:
                dist.barrier()
            if rank != 0:
                dist.barrier()  # SPG101

        def other_operation(x):
            rank = dist.get_rank()
            if rank != 0:
                dist.barrier()  # SPG101
            x.prepare()
            if rank == 0:
                dist.all_reduce(x)  # SPG101
            dist.barrier()

        def leaves_between(x):
            rank = dist.get_rank()
            if rank != 0:
                dist.barrier()  # SPG101
            if rank == 0 and x.empty():
                return  # SPG102
            if rank == 0:
                dist.barrier()  # SPG101
        """,
        *CODES,
    )
