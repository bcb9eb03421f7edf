"""SPG704: environment variables without effect."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_renamed() -> None:
    """Names that PyTorch has given up."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        os.environ["NCCL_ASYNC_ERROR_HANDLING"] = "1"  # SPG704

        def main():
            os.environ.setdefault("NCCL_BLOCKING_WAIT", "1")  # SPG704
            dist.init_process_group("nccl")
        """,
        "SPG704",
    )


def test_too_late() -> None:
    """Variables set behind the init call of the same block."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main():
            dist.init_process_group("nccl")
            os.environ["MASTER_PORT"] = "29501"  # SPG704
            os.environ["NCCL_DEBUG"] = "INFO"  # SPG704
            os.environ["OMP_NUM_THREADS"] = "1"
        """,
        "SPG704",
    )


def test_in_time() -> None:
    """Present names before the init call are silent."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def main():
            os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1"
            os.environ["MASTER_PORT"] = "29501"
            dist.init_process_group("nccl")

        def other():
            os.environ["MASTER_PORT"] = "29501"
        """,
        "SPG704",
    )


def test_behind_a_function_that_makes_the_group() -> None:
    """The group is made in a function of the file, or the variable is set in one, or in a block."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def start():
            dist.init_process_group("nccl")

        def main():
            start()
            os.environ["MASTER_PORT"] = "29501"  # SPG704

        def strict():
            os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"  # SPG704

        def blocked(wait):
            dist.init_process_group("nccl")
            if wait:
                os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")  # SPG704
                strict()

        class Runtime:
            def __init__(self):
                start()
                self.tighten()

            def tighten(self):
                os.environ["TORCH_NCCL_DESYNC_DEBUG"] = "1"  # SPG704
        """,
        "SPG704",
    )


def test_set_for_another_group_or_process() -> None:
    """A function that sets first, a group that is made anew, and what a child process reads."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist

        def start(wait):
            if wait:
                os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"
            dist.init_process_group("nccl")

        def main():
            start(True)
            dist.barrier()

        def anew():
            dist.init_process_group("nccl")
            dist.destroy_process_group()
            os.environ["MASTER_PORT"] = "29502"
            dist.init_process_group("nccl")

        def child(engine):
            dist.init_process_group("nccl")
            if engine is None:
                os.environ["MASTER_PORT"] = "29503"
        """,
        "SPG704",
    )


def test_miss_other_file() -> None:
    """Known miss: a variable set behind a function of another file that makes the group."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist
        from setup import start

        def main():
            start()
            os.environ["MASTER_PORT"] = "29501"
            dist.barrier()
        """,
        "SPG704",
    )


def test_devices_made_visible_too_late() -> None:
    """Behind an NCCL group or a bound device the variable is read already; before, and for children, it counts."""
    assert agree(
        """
        import os
        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def behind_the_group():
            dist.init_process_group("nccl")
            os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]  # SPG704

        def behind_the_device(local_rank):
            torch.cuda.set_device(0)
            os.environ["CUDA_VISIBLE_DEVICES"] = str(local_rank)  # SPG704

        def in_time():
            os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]
            dist.init_process_group("nccl")

        def on_the_host():
            dist.init_process_group("gloo")
            os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]

        def for_children(main):
            os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
            mp.spawn(main, nprocs=2)
        """,
        "SPG704",
    )
