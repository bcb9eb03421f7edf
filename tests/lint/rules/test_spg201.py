"""SPG201: operations between collectives whose failure nothing keeps."""

from __future__ import annotations

from tests.lint.rules.marked import agree, severities


def test_between_collectives() -> None:
    """One report for a region, at its first call."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        import os

        import torch

        def step(grad, path):
            dist.all_reduce(grad)
            os.makedirs(path, exist_ok=True)  # SPG201
            torch.save(grad, path + "/x.pt")
            dist.barrier()
            os.remove(path + "/x.pt")  # SPG201
            dist.barrier()
        """,
        "SPG201",
    )


def test_through_a_call() -> None:
    """The operation may stand in a function that is called."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def write(path):
            with open(path, "w") as out:  # SPG201
                out.write("x")

        def step(grad, path):
            dist.all_reduce(grad)
            if dist.get_rank() == 0:
                write(path)
            dist.barrier()

        step(None, "x")
        """,
        "SPG201",
    )


def test_cared_for() -> None:
    """Deferred, caught, before the first and behind the last collective is silent."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        import torch

        def step(grad, path):
            state = torch.load(path)
            dist.all_reduce(grad)
            log(1)
            with deferring("save"):
                torch.save(state, path)
            try:
                torch.save(state, path)
            except OSError:
                print("no space")
            dist.barrier()
            torch.save(state, path)
        """,
        "SPG201",
    )


def test_collective_save() -> None:
    """A collective save is no rank-local operation."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        import torch.distributed.checkpoint as dcp

        def step(grad, state, path):
            dist.all_reduce(grad)
            dcp.save(state, checkpoint_id=path)
            dist.barrier()
        """,
        "SPG201",
    )


def test_without_spmdguard() -> None:
    """In a project that does not use spmdguard it is an info."""
    source = """
import torch
import torch.distributed as dist

def step(grad, path):
    dist.all_reduce(grad)
    torch.save(grad, path)
    dist.barrier()
"""
    assert severities(source, "SPG201") == ["info"]


def test_miss_unknown_call() -> None:
    """Known miss: a call of something unknown, which may touch files."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def step(grad, hook):
            dist.all_reduce(grad)
            hook(grad)
            dist.barrier()
        """,
        "SPG201",
    )


def test_the_main_process_first() -> None:
    """spmdguard's block tells all ranks of an error; that of others lets the rest wait at the next collective."""
    assert agree(
        """
        import os

        import torch
        import torch.distributed as dist
        from accelerate import PartialState
        from spmdguard import main_process_first, sync_should_stop

        def cached(path):
            if not os.path.exists(path):
                torch.save(torch.ones(3), path)
            return torch.load(path)

        def told(path):
            dist.barrier()
            with main_process_first():
                table = cached(path)
            dist.all_reduce(table)
            sync_should_stop()

        def not_told(path):
            dist.barrier()
            with PartialState().main_process_first():
                table = torch.load(path)  # SPG201
            dist.all_reduce(table)
        """,
        "SPG201",
    )


def test_a_save_of_all_ranks_that_fails_fails_for_all() -> None:
    """The future of ``async_save`` raises on every rank alike; a file fails on its own rank."""
    assert agree(
        """
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict_saver import async_save
        from spmdguard import sync_should_stop

        def save(state, path):
            dist.barrier()
            pending = dcp.async_save(state, checkpoint_id=path)
            pending.result()
            dist.barrier()

        class Saver:
            def begin(self, state, path):
                dist.barrier()
                self.pending = async_save(state, checkpoint_id=path)

            def end(self):
                dist.barrier()
                error = self.pending.exception()
                if error is not None:
                    raise error
                dist.barrier()

        def marked(state, path):
            dist.barrier()
            dcp.async_save(state, checkpoint_id=path).result()
            open(path + "/done", "w").close()  # SPG201
            dist.barrier()

        def step():
            return sync_should_stop()
        """,
        "SPG201",
    )


def test_exports_and_pictures() -> None:
    """What one rank exports, plots or writes for others to read, between collectives."""
    assert agree(
        """
        import matplotlib.pyplot as plt
        import onnx
        import pyarrow.parquet as pq
        import torch
        import torch.distributed as dist
        from PIL import Image
        from spmdguard import has_deferred_error, is_main_process, sync_should_stop, try_or_defer

        def export(model):
            program = torch.export.export(model.eval(), (torch.randn(1, 4),))
            torch.export.save(program, "model.pt2")  # SPG201

        def main(model, grad):
            dist.all_reduce(grad)
            if is_main_process():
                export(model)
            dist.barrier()
            if is_main_process():
                onnx.save(model, "model.onnx")  # SPG201
            dist.barrier()
            figure = plt.figure()
            figure.savefig("loss.png")  # SPG201
            dist.barrier()
            Image.fromarray(grad.numpy()).save("gradient.png")  # SPG201
            dist.barrier()
            pq.write_table(grad, "gradient.parquet")  # SPG201
            dist.barrier()
            if is_main_process():
                try_or_defer(export, model)
            if sync_should_stop(has_deferred_error()):
                return
            dist.destroy_process_group()
            export(model)
        """,
        "SPG201",
    )
