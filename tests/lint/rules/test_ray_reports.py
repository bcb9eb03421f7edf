"""Ray Train: all workers meet at a report, then each uploads from the folder that it names; nobody waits for that."""

from __future__ import annotations

from tests.lint.rules.marked import agree

PROGRAM = """
        import os
        import shutil
        import tempfile

        import torch
        import torch.distributed as dist
        import ray.train
        from ray import train
        from ray.train import Checkpoint

        def direct(state, folder):
            context = train.get_context()
            torch.save(state, os.path.join(folder, f"{{context.get_world_rank()}}.pt"))
            dist.barrier()
            train.report({{"loss": 1.0}}, checkpoint=Checkpoint.from_directory(folder))
            {between}
            if context.get_local_rank() == 0:
                shutil.rmtree(folder){found}

        class Reporter:
            def __init__(self, root):
                self.root, self.local_rank = root, ray.train.get_context().get_local_rank()

            def folder(self, epoch):
                return os.path.join(self.root, str(epoch))

            def on_epoch_end(self, epoch, model):
                checkpoint = ray.train.Checkpoint.from_directory(self.folder(epoch))
                ray.train.report(model.metrics, checkpoint=checkpoint)
                {between}
                if self.local_rank == 0:
                    shutil.rmtree(self.folder(epoch), ignore_errors=True){found}
"""


def test_a_folder_that_others_still_upload() -> None:
    """Removed at once, or after a pause."""
    for between in ("pass", "__import__('time').sleep(1)"):
        assert agree(PROGRAM.format(between=between, found="  # SPG503"), "SPG503")


def test_a_folder_that_all_have_uploaded() -> None:
    """A barrier in between; and what belongs to one rank alone."""
    assert agree(PROGRAM.format(between="dist.barrier()", found=""), "SPG503")
    assert agree(
        """
        import shutil
        import tempfile

        import torch
        from ray import train
        from ray.train import Checkpoint

        def own_folder(state):
            with tempfile.TemporaryDirectory() as folder:
                torch.save(state, folder + "/state.pt")
                train.report({}, checkpoint=Checkpoint.from_directory(folder))
            private = tempfile.mkdtemp()
            train.report({}, checkpoint=Checkpoint.from_directory(private))
            if train.get_context().get_world_rank() == 0:
                shutil.rmtree(private)

        def of_the_first(state, folder):
            if train.get_context().get_world_rank() == 0:
                torch.save(state, folder + "/state.pt")
                train.report({}, checkpoint=Checkpoint.from_directory(folder))
                shutil.rmtree(folder)
            else:
                train.report({})
        """,
        "SPG503",
    )
