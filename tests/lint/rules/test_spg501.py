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


def test_earlier_save_waited_for_where_there_is_one() -> None:
    """Where the handle is None, or done, nothing is under way."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        class A:
            def __init__(self):
                self.pending = None
            def wait(self):
                if self.pending is not None:
                    self.pending.result()
                    self.pending = None
            def prune(self, folder):
                if dist.get_rank() == 0:
                    shutil.rmtree(folder)
            def save(self, state, folder, old):
                self.wait()
                self.prune(old)
                self.pending = dcp.async_save(state, checkpoint_id=folder)

        def loop_a(state, n):
            a = A()
            dist.barrier()
            for i in range(n):
                a.save(state, f"s{i}", f"s{i-2}")
            a.wait()

        def loop_b(state, n):
            future = None
            dist.barrier()
            for i in range(n):
                if future:
                    future.result()
                if dist.get_rank() == 0:
                    shutil.rmtree(f"s{i-2}", ignore_errors=True)
                future = dcp.async_save(state, checkpoint_id=f"s{i}")
            if future is not None:
                future.result()

        class D:
            def __init__(self):
                self.future = None
            def maybe_wait(self):
                if self.future is None:
                    return
                self.future.result()
                self.future = None
            def save(self, state, folder, old):
                self.maybe_wait()
                if dist.get_rank() == 0:
                    os.replace(old, "latest")
                self.future = dcp.async_save(state, checkpoint_id=folder)

        def loop_d(state, n):
            d = D()
            dist.barrier()
            for i in range(n):
                d.save(state, f"s{i}", f"s{i-2}")

        class E:
            def __init__(self):
                self.future = None
            def save(self, state, folder, old):
                if self.future is not None and not self.future.done():
                    self.future.result()
                if dist.get_rank() == 0:
                    os.replace(old, "latest")
                self.future = dcp.async_save(state, checkpoint_id=folder)

        def loop_e(state, n):
            d = E()
            dist.barrier()
            for i in range(n):
                d.save(state, f"s{i}", f"s{i-2}")
        """,
        "SPG501",
    )


def test_earlier_save_not_waited_for() -> None:
    """Waited for where something else says so; asked for and not waited for; waited for before the next one begins."""
    assert agree(
        """
        import os
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        class Bad:
            def __init__(self):
                self.pending = None
            def save(self, state, folder, old, wait):
                if wait:
                    self.pending.result()
                if dist.get_rank() == 0:
                    shutil.rmtree(old)  # SPG501
                self.pending = dcp.async_save(state, checkpoint_id=folder)

        def loop_bad(state, n, wait):
            d = Bad()
            dist.barrier()
            for i in range(n):
                d.save(state, f"s{i}", f"s{i-2}", wait)

        class Bad2:
            def __init__(self):
                self.pending = None
            def save(self, state, folder, old, wait):
                if self.pending is not None:
                    print("busy")
                if dist.get_rank() == 0:
                    shutil.rmtree(old)  # SPG501
                self.pending = dcp.async_save(state, checkpoint_id=folder)

        def loop_bad2(state, n, wait):
            d = Bad2()
            dist.barrier()
            for i in range(n):
                d.save(state, f"s{i}", f"s{i-2}", wait)

        class Bad3:
            def __init__(self):
                self.pending = None
            def save(self, state, folder, old, wait):
                if self.pending is not None:
                    self.pending.result()
                    self.pending = None
                self.pending = dcp.async_save(state, checkpoint_id=folder)
                if dist.get_rank() == 0:
                    shutil.rmtree(old)  # SPG501

        def loop_bad3(state, n, wait):
            d = Bad3()
            dist.barrier()
            for i in range(n):
                d.save(state, f"s{i}", f"s{i-2}", wait)
        """,
        "SPG501",
    )


def test_several_saves_under_way() -> None:
    """All of them are awaited before the old ones go, until none is left; or after that."""
    assert agree(
        """
        import shutil
        from collections import deque

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        class Saver:
            def __init__(self, limit):
                self.limit = limit
                self.running = deque()
                self.done = []
            def oldest(self):
                step, future = self.running.popleft()
                future.result()
                self.done.append(step)
            def save(self, state, step):
                while len(self.running) >= self.limit:
                    self.oldest()
                future = dcp.async_save(state, checkpoint_id=str(step))
                self.running.append((step, future))
            def close(self):
                while self.running:
                    self.oldest()
                if dist.get_rank() == 0:
                    shutil.rmtree(str(self.done[0]))

        def fit(state, n):
            dist.barrier()
            saver = Saver(2)
            for step in range(n):
                saver.save(state, step)
            saver.close()

        class Early(Saver):
            def close(self):
                if dist.get_rank() == 0:
                    shutil.rmtree(str(self.done[0]))  # SPG501
                while self.running:
                    self.oldest()

        def fit_early(state, n):
            dist.barrier()
            saver = Early(2)
            for step in range(n):
                saver.save(state, step)
            saver.close()

        class ByName:
            def __init__(self):
                self.futures = {}
            def save(self, state, name):
                self.futures[name] = dcp.async_save(state, checkpoint_id=name)
            def close(self):
                while len(self.futures) > 0:
                    _, future = self.futures.popitem()
                    future.result()
                if dist.get_rank() == 0:
                    shutil.rmtree("old")

        def fit_by_name(state, n):
            dist.barrier()
            saver = ByName()
            for step in range(n):
                saver.save(state, f"s{step}")
            saver.close()
        """,
        "SPG501",
    )


def test_saves_asked_for_by_a_property() -> None:
    """A property or a function that says whether a save is under way; one that says something else."""
    assert agree(
        """
        import shutil

        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        class Keeper:
            def __init__(self):
                self.future = None
                self.left = 3

            @property
            def busy(self):
                return self.future is not None

            def full(self):
                return self.left < 1

            def drain(self):
                if not self.busy:
                    return
                self.future.result()
                self.future = None

            def save(self, state, folder, old):
                self.drain()
                if dist.get_rank() == 0:
                    shutil.rmtree(old)
                self.future = dcp.async_save(state, checkpoint_id=folder)

        def run(state, n):
            dist.barrier()
            keeper = Keeper()
            for i in range(n):
                keeper.save(state, f"s{i}", f"s{i - 2}")

        class Wasteful(Keeper):
            def drain(self):
                if not self.full():
                    return
                self.future.result()
                self.future = None

            def save(self, state, folder, old):
                self.drain()
                if dist.get_rank() == 0:
                    shutil.rmtree(old)  # SPG501
                self.future = dcp.async_save(state, checkpoint_id=folder)

        def waste(state, n):
            dist.barrier()
            keeper = Wasteful()
            for i in range(n):
                keeper.save(state, f"s{i}", f"s{i - 2}")
        """,
        "SPG501",
    )
