"""SPG611: processes that nobody waits for."""

from __future__ import annotations

from tests.lint.rules.marked import agree

WORK = """
            import multiprocessing
            import os
            import torch.distributed as dist
            import torch.multiprocessing as mp
            from torch.multiprocessing import Process, spawn

            def work(rank, world):
                dist.init_process_group("gloo", rank=rank, world_size=world)
                dist.barrier()
                dist.destroy_process_group()

            def read(path):
                print(os.path.join(path, ", ".join(["a"])))
"""


def test_nobody_joins() -> None:
    """Contexts that are dropped or never read, and processes of a file that joins none."""
    for launch in (
        "mp.spawn(work, args=(world,), nprocs=world, join=False)  # SPG611",
        "spawn(work, (world,), world, join=False)  # SPG611",
        "context = mp.start_processes(work, (world,), world, join=False)  # SPG611",
        "mp.Process(target=work, args=(0, world)).start()  # SPG611",
        "started = [Process(target=work, args=(r, world)) for r in range(world)]  # SPG611",
    ):
        assert agree(
            f"""{WORK}
            def launch(world):
                {launch}
                print("training finished")
            """,
            "SPG611",
        )


def test_processes_of_a_start_method() -> None:
    """A context for a start method makes processes too."""
    assert agree(
        f"""{WORK}
            def launch(world):
                context = mp.get_context("spawn")
                started = [context.Process(target=work, args=(r, world)) for r in range(world)]  # SPG611
                for process in started:
                    process.start()
        """,
        "SPG611",
    )


def test_somebody_joins() -> None:
    """Contexts that are joined, returned or kept, processes that are waited for, and those that do not communicate."""
    for launch in (
        "mp.spawn(work, args=(world,), nprocs=world)",
        "mp.spawn(work, args=(world,), nprocs=world, join=True)",
        "return mp.spawn(work, args=(world,), nprocs=world, join=False)",
        "context = mp.spawn(work, (world,), world, join=False)\n                while not context.join(): pass",
        "started = Process(target=work, args=(0, world)); started.start(); started.join()",
        "started = Process(target=work, args=(0, world)); started.start(); print(started.exitcode)",
        "mp.Process(target=read, args=('x',)).start()",
    ):
        assert agree(
            f"""{WORK}
            def launch(world):
                {launch}
            """,
            "SPG611",
        )


WRITER = """
            import atexit
            import queue
            import threading
            import torch
            import torch.distributed as dist

            class Writer:
                def __init__(self, folder):
                    self.folder, self.jobs = folder, queue.Queue()
                    self.thread = threading.Thread(target=self._run, daemon=True){there}
                    self.thread.start()

                def _run(self):
                    while True:
                        item = self.jobs.get()
                        if item is None:
                            return
                        self._write(item)

                def _write(self, item):
                    torch.save(item, self.folder)

                def put(self, item):
                    self.jobs.put(item)

                def finish(self):
                    self.close()

                def close(self):
                    self.jobs.put(None)
                    self.thread.join()
"""


def test_daemons_that_nobody_waits_for() -> None:
    """A writer that an attribute or a name holds and whose `close` nobody calls; a thread of one function."""
    for use in (
        """
            def main(model):
                dist.init_process_group("gloo")
                writer = Writer("out") if dist.get_rank() == 0 else None
                if writer is not None:
                    writer.put(model.state_dict())
                dist.barrier()
        """,
        """
            class Trainer:
                def __init__(self, model):
                    self.model, self.writer = model, None
                    if dist.get_rank() == 0:
                        self.writer = Writer("out")

                def fit(self):
                    dist.barrier()
                    if self.writer:
                        self.writer.put(self.model.state_dict())
        """,
    ):
        assert agree(WRITER.format(there="  # SPG611") + use, "SPG611")
    assert agree(
        """
        import threading
        from threading import Thread
        import torch
        import torch.distributed as dist

        def save(state):
            torch.save(state, "last.pt")

        def by_name(state):
            dist.barrier()
            thread = Thread(target=save, args=(state,), daemon=True)  # SPG611
            thread.start()

        def in_place(state):
            dist.barrier()
            threading.Thread(target=save, args=(state,), daemon=True).start()  # SPG611
        """,
        "SPG611",
    )


def test_other_ways_to_make_a_daemon() -> None:
    """A class of threads, an attribute that is set afterwards, the old method."""
    assert agree(
        """
        import queue
        import threading
        import torch
        import torch.distributed as dist

        class Saving(threading.Thread):
            def __init__(self):
                super().__init__(daemon=True)  # SPG611
                self.jobs = queue.Queue()

            def run(self):
                while True:
                    torch.save(self.jobs.get(), "last.pt")

        class Joined(Saving):
            def __init__(self):
                super().__init__()
                self.daemon = True

            def run(self):
                torch.save(self.jobs.get(), "last.pt")

        class Holding:
            def __init__(self):
                self.jobs = queue.Queue()
                self.thread = threading.Thread(target=self.loop)  # SPG611
                self.thread.daemon = True
                self.thread.start()

            def loop(self):
                while True:
                    torch.save(self.jobs.get(), "last.pt")

        def main(x):
            saving = Saving()
            saving.start()
            holding = Holding()
            joined = Joined()
            dist.all_reduce(x)
            saving.jobs.put(x)
            holding.jobs.put(x)
            joined.join()

        def inside(x):
            dist.all_reduce(x)

            def write():
                torch.save(x, "last.pt")

            thread = threading.Thread(target=write)  # SPG611
            thread.setDaemon(True)
            thread.start()
        """,
        "SPG611",
    )


def test_daemons_that_somebody_waits_for() -> None:
    """Closed, finished, left at exit, or handed to somebody else."""
    for use in (
        """
            def main(model):
                writer = Writer("out")
                writer.put(model)
                dist.barrier()
                writer.close()
        """,
        """
            class Trainer:
                def __init__(self):
                    self.writer = Writer("out")

            def main(model):
                trainer = Trainer()
                dist.barrier()
                trainer.writer.finish()
        """,
        """
            def main(model):
                writer = Writer("out")
                atexit.register(writer.close)
                dist.barrier()
        """,
        """
            def main(model, callbacks):
                writer = Writer("out")
                callbacks.append(writer)
                dist.barrier()
        """,
        """
            def main(model):
                dist.barrier()
                return Writer("out")
        """,
        """
            def main(model):
                writer = Writer("out")
                dist.barrier()
                writer.jobs.join()
        """,
    ):
        assert agree(WRITER.format(there="") + use, "SPG611")


def test_other_threads() -> None:
    """A thread that is no daemon, one that watches, one that is waited for, one that is kept."""
    assert agree(
        """
        import threading
        import time
        import torch
        import torch.distributed as dist

        def save(state):
            torch.save(state, "last.pt")

        def watch():
            while True:
                print("alive")
                time.sleep(1)

        def main(state, kept):
            dist.barrier()
            threading.Thread(target=save, args=(state,)).start()
            threading.Thread(target=watch, daemon=True).start()

        def waited(state):
            dist.barrier()
            thread = threading.Thread(target=save, args=(state,), daemon=True)
            thread.start()
            thread.join()

        def handed(state, kept):
            dist.barrier()
            thread = threading.Thread(target=save, args=(state,), daemon=True)
            kept.append(thread)
        """,
        "SPG611",
    )


def test_training_that_is_imported_by_name() -> None:
    """A process whose function makes the group communicates, whatever module it then runs."""
    assert agree(
        """
        import importlib
        import multiprocessing as mp
        import torch.distributed as dist

        def join(rank, world):
            if dist.is_available() and dist.is_initialized():
                return dist.get_rank()
            dist.init_process_group("gloo", rank=rank, world_size=world)
            return dist.get_rank()

        def main(rank, world, app):
            join(rank, world)
            importlib.import_module(f"app.{app}").main()

        def convert(number, app):
            importlib.import_module(f"app.{app}").main()

        if __name__ == "__main__":
            for rank in range(4):
                mp.Process(target=main, args=(rank, 4, "a")).start()  # SPG611
            for number in range(4):
                mp.Process(target=convert, args=(number, "a")).start()
        """,
        "SPG611",
    )
