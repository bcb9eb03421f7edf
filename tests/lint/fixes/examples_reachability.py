"""What the fixes of families 1 and 2 make of a program, word for word."""

from __future__ import annotations

from tests.lint.fixes.example import example

EXAMPLES = [
    example(
        "SPG101",
        "unsafe",
        """
        import torch.distributed as dist

        def report(loss):
            # only the main rank prints
            if dist.get_rank() == 0:  # main
                print("loss")
                # meet
                dist.barrier()  # all
            return loss
        """,
        """
        import torch.distributed as dist

        def report(loss):
            # only the main rank prints
            if dist.get_rank() == 0:  # main
                print("loss")
            # meet
            dist.barrier()  # all
            return loss
        """,
    ),
    example(
        "SPG101",
        "unsafe",
        """
        import torch.distributed as dist

        def report(loss):
            if dist.get_rank() == 0: dist.barrier()  # all
        """,
        """
        import torch.distributed as dist

        def report(loss):
            # all
            dist.barrier()
        """,
    ),
    example(
        "SPG101",
        "unsafe",
        """
        import torch.distributed as dist

        def report(loss):
            if dist.get_rank() == 0:
                print("before")
                dist.all_reduce(loss)
                print("after")
        """,
        """
        import torch.distributed as dist

        def report(loss):
            if dist.get_rank() == 0:
                print("before")
            dist.all_reduce(loss)
            if dist.get_rank() == 0:
                print("after")
        """,
    ),
    example(
        "SPG104",
        "unsafe",
        """
        import torch.distributed as dist

        def mean(value):
            dist.all_reduce(value)
            return value / dist.get_world_size()

        def report(loss):
            # the log
            if dist.get_rank() == 0:
                print("loss", mean(loss).item())  # shown
        """,
        """
        import torch.distributed as dist

        def mean(value):
            dist.all_reduce(value)
            return value / dist.get_world_size()

        def report(loss):
            # the log
            mean_result = mean(loss)
            if dist.get_rank() == 0:
                print("loss", mean_result.item())  # shown
        """,
    ),
    example(
        "SPG101",
        "unsafe",
        """
        import torch
        import torch.distributed as dist
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

        def save(module, path):
            model = FSDP(module)
            if dist.get_rank() == 0:
                torch.save(model.state_dict(), path)
        """,
        """
        import torch
        import torch.distributed as dist
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

        def save(module, path):
            model = FSDP(module)
            state_dict = model.state_dict()
            if dist.get_rank() == 0:
                torch.save(state_dict, path)
        """,
    ),
    example(
        "SPG104",
        "unsafe",
        """
        import torch.distributed as dist

        def mean(value):
            dist.all_reduce(value)
            return value / dist.get_world_size()

        def report(step, loss):
            # every tenth step
            if dist.get_rank() == 0 and step % 10 == 0:
                # shown
                print("loss", mean(loss).item())
            return loss
        """,
        """
        import torch.distributed as dist

        def mean(value):
            dist.all_reduce(value)
            return value / dist.get_world_size()

        def report(step, loss):
            # every tenth step
            if step % 10 == 0:
                mean_result = mean(loss)
                if dist.get_rank() == 0:
                    # shown
                    print("loss", mean_result.item())
            return loss
        """,
    ),
    example(
        "SPG204",
        "safe",
        '''
        import torch.distributed as dist

        def prepare(fetch, path):
            if dist.get_rank() != 0:
                dist.barrier()

            # the work
            fetch(path)  # slow
            text = """
          kept
        """
            # release the others
            if dist.get_rank() == 0:
                dist.barrier()
            return text
        ''',
        '''
        import torch.distributed as dist

        def prepare(fetch, path):
            if dist.get_rank() != 0:
                dist.barrier()

            # the work
            try:
                fetch(path)  # slow
                text = """
          kept
        """
            finally:
                # release the others
                if dist.get_rank() == 0:
                    dist.barrier()
            return text
        ''',
    ),
    example(
        "SPG206",
        "safe",
        """
        import torch.distributed as dist

        def run(trainer):
            # the run
            try:  # all of it
                trainer.fit()
                dist.all_reduce(trainer.total)
                # end of the run
            finally:
                # meet
                dist.barrier()
                dist.destroy_process_group()
        """,
        """
        import torch.distributed as dist

        def run(trainer):
            # the run
            # all of it
            trainer.fit()
            dist.all_reduce(trainer.total)
            # end of the run
            # meet
            dist.barrier()
            dist.destroy_process_group()
        """,
    ),
]
