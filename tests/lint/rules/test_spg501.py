"""SPG501: last steps of a checkpoint that do not wait for its save."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_pointer_too_early() -> None:
    """A rename, link or removal while the asynchronous save may be writing."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        def rename(state, folder):
            handle = dcp.async_save(state, checkpoint_id=folder)
            if dist.get_rank() == 0:
                os.replace(folder + ".tmp", "latest")  # SPG501
            return handle

        def link(state, folder):
            dcp.async_save(state, checkpoint_id=folder)
            if dist.get_rank() == 0:
                os.symlink(folder, "latest")  # SPG501
        """,
        "SPG501",
    )


def test_through_a_method() -> None:
    """The step may stand in a method; its call is reported."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        class Keeper:
            def prune(self, folder):
                shutil.rmtree(folder)

            def save(self, state, folder):
                self.pending = dcp.async_save(state, checkpoint_id=folder)
                if dist.get_rank() == 0:
                    self.prune(folder)  # SPG501
        """,
        "SPG501",
    )


def test_waited_for() -> None:
    """Waiting first, or a save that is not asynchronous, is silent."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        def waited(state, folder):
            dcp.async_save(state, checkpoint_id=folder).result()
            if dist.get_rank() == 0:
                os.replace(folder + ".tmp", "latest")

        def later(state, folder, pending):
            pending.result()
            if dist.get_rank() == 0:
                os.replace(folder + ".tmp", "latest")
            return dcp.async_save(state, checkpoint_id=folder)

        def blocking(state, folder):
            dcp.save(state, checkpoint_id=folder)
            if dist.get_rank() == 0:
                os.replace(folder + ".tmp", "latest")
        """,
        "SPG501",
    )


def test_pointer_file() -> None:
    """The pointer may be a text file, known by its name."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        def save(state, folder):
            dcp.async_save(state, checkpoint_id=folder)
            with open("latest.txt", "w") as out:  # SPG501
                out.write(folder)
        """,
        "SPG501",
    )


def test_miss_pointer_of_another_name() -> None:
    """Known miss: a pointer file whose name does not tell."""
    assert agree(
        """
        import torch.distributed.checkpoint as dcp

        def save(state, folder):
            dcp.async_save(state, checkpoint_id=folder)
            with open("resume_from.txt", "w") as out:
                out.write(folder)
        """,
        "SPG501",
    )


def test_old_ones_removed_before_the_verdict() -> None:
    """One rank removes what is old while another rank's kept error is not known to it."""
    assert agree(
        """
        import os
        import shutil

        import torch
        import torch.distributed as dist
        from spmdguard import deferring, has_deferred_error, is_main_process, rank_local, sync_should_stop

        def in_place(shard, folder, old):
            with deferring("write"):
                torch.save(shard, f"{folder}/{dist.get_rank()}.pt")
            if is_main_process():
                with deferring("rotate"):
                    shutil.rmtree(old)  # SPG501
            return sync_should_stop(has_deferred_error())

        @rank_local
        def write(shard, folder):
            torch.save(shard, f"{folder}/{dist.get_rank()}.pt")

        @rank_local(only="main")
        def rotate(folders):
            for folder in folders[:-2]:
                shutil.rmtree(folder)

        def by_functions(shard, folders):
            write(shard, folders[-1])
            dist.barrier()
            rotate(folders)  # SPG501
            return sync_should_stop(has_deferred_error())
        """,
        "SPG501",
    )


def test_old_ones_removed_after_the_verdict() -> None:
    """An agreement between, a file of the same rank alone, a temporary one in the same block."""
    assert agree(
        """
        import os
        import shutil

        import torch
        import torch.distributed as dist
        from spmdguard import deferring, has_deferred_error, is_main_process, sync_should_stop

        def agreed(shard, folder, old):
            with deferring("write"):
                torch.save(shard, f"{folder}/{dist.get_rank()}.pt")
            if sync_should_stop(has_deferred_error()):
                return True
            if is_main_process():
                with deferring("rotate"):
                    shutil.rmtree(old)
            return sync_should_stop(has_deferred_error())

        def of_main_alone(state, path, old):
            if is_main_process():
                with deferring("write"):
                    torch.save(state, path + ".tmp")
                    os.replace(path + ".tmp", path)
                    os.remove(old)
            return sync_should_stop(has_deferred_error())
        """,
        "SPG501",
    )
