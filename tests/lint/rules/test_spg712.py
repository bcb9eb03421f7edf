"""SPG712: a launcher that waits for its ranks one after another."""

from __future__ import annotations

import textwrap

import pytest

from tests.lint.rules.marked import agree

CODE = "SPG712"
START = """
import os, subprocess, sys, time

def start(size, command):
    children = []
    for rank in range(size):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size))
        children.append(subprocess.Popen(command, env=env))
    return children
"""


@pytest.mark.parametrize(
    "wait",
    [
        """
        def main(size, command):
            for child in start(size, command):
                child.wait()  # SPG712
        """,
        """
        def main(size, command):
            codes = [child.wait() for child in start(size, command)]  # SPG712
            sys.exit(max(codes))
        """,
        """
        class Launcher:
            def launch(self, size, command):
                self.children = start(size, command)

            def stop(self):
                for child in self.children:
                    if child.poll() is None:
                        child.terminate()

            def wait(self):
                for rank, child in enumerate(self.children):
                    code = child.wait()  # SPG712
                    if code:
                        self.stop()
                        return code
                return 0
        """,
        """
        def main(size, command):
            for child in start(size, command):
                out, _ = child.communicate()  # SPG712
                print(out)
        """,
    ],
)
def test_ranks_that_are_waited_for_in_order(wait: str) -> None:
    """A loop, a comprehension, a class that ends the others too late, output that is read to its end."""
    assert agree(START + textwrap.dedent(wait), CODE)


@pytest.mark.parametrize(
    "wait",
    [
        """
        def main(size, command):
            children = start(size, command)
            while any(child.poll() is None for child in children):
                time.sleep(1)
            for child in children:
                child.wait()
        """,
        """
        def stop(children):
            for child in children:
                child.terminate()
            for child in children:
                child.wait()
        """,
        """
        def main(size, command):
            for child in start(size, command):
                child.wait(timeout=60)
        """,
        """
        def main(size, command):
            children = start(size, command)
            children[0].wait()
        """,
    ],
)
def test_ranks_that_are_looked_at_together_or_ended(wait: str) -> None:
    """Polled until all have ended, ended before, a wait with a limit, a wait for the first one alone."""
    assert agree(START + textwrap.dedent(wait), CODE)


def test_other_children() -> None:
    """Processes that are no ranks of one job."""
    assert agree(
        """
        import subprocess
        import torch.distributed as dist
        from multiprocessing import Process

        def convert(files):
            children = [subprocess.Popen(["convert", file]) for file in files]
            for child in children:
                child.wait()

        def work(rank, size):
            dist.init_process_group("gloo", rank=rank, world_size=size)

        def read(file):
            print(file)

        def main(files):
            readers = [Process(target=read, args=(file,)) for file in files]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
        """,
        CODE,
    )


WORK = """
import multiprocessing
import sys
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.multiprocessing import Process

def work(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    dist.barrier()
"""


@pytest.mark.parametrize(
    "launch",
    [
        """
        def main(size):
            workers = [Process(target=work, args=(rank, size)) for rank in range(size)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()  # SPG712
            print("done")
        """,
        """
        def main(size):
            context = multiprocessing.get_context("spawn")
            workers = []
            for rank in range(size):
                worker = context.Process(target=work, args=(rank, size))
                worker.start()
                workers.append(worker)
            [worker.join() for worker in workers]  # SPG712
        """,
        """
        def start(rank, size):
            worker = mp.Process(target=work, kwargs={"rank": rank, "size": size})
            worker.start()
            return worker

        class Launcher:
            def run(self, size):
                self.workers = [start(rank, size) for rank in range(size)]
                for rank, worker in enumerate(self.workers):
                    worker.join()  # SPG712
        """,
        """
        def main(size):
            workers = [Process(target=work, args=(rank, size)) for rank in range(size)]
            for worker in workers:
                worker.join()  # SPG712
            sys.exit(any(worker.exitcode for worker in workers))
        """,
        """
        def main(size):
            context = mp.get_context("spawn")
            workers = [context.Process(target=work, args=(rank, size)) for rank in range(size)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()  # SPG712
                if worker.exitcode != 0:
                    raise RuntimeError(f"{worker.name} failed")
        """,
    ],
)
def test_processes_that_are_joined_in_order(launch: str) -> None:
    """Processes of multiprocessing, of a start method, of a helper; exit codes are read afterwards or never."""
    assert agree(WORK + textwrap.dedent(launch), CODE)


@pytest.mark.parametrize(
    "launch",
    [
        """
        def main(size):
            workers = [Process(target=work, args=(rank, size)) for rank in range(size)]
            while any(worker.exitcode is None for worker in workers):
                if any(worker.exitcode for worker in workers):
                    stop(workers)
            for worker in workers:
                worker.join()
        """,
        """
        def failed(workers):
            return any(worker.exitcode for worker in workers)

        def main(size):
            workers = [Process(target=work, args=(rank, size)) for rank in range(size)]
            watch(failed, workers)
            for worker in workers:
                worker.join()
        """,
        """
        def main(size):
            errors = mp.Queue()
            workers = [Process(target=work, args=(rank, size)) for rank in range(size)]
            for worker in workers:
                worker.join()
            assert errors.empty()
        """,
        """
        def main(size):
            workers = [Process(target=work, args=(rank, size)) for rank in range(size)]
            for worker in workers:
                worker.join(60)
        """,
        """
        def main(size):
            helper = Process(target=work, args=(0, size))
            helper.start()
            helper.join()
        """,
        """
        def main(size):
            mp.spawn(work, args=(size,), nprocs=size)
        """,
    ],
)
def test_processes_whose_failure_is_seen(launch: str) -> None:
    """Exit codes read meanwhile, here or by a function, a queue of errors, a wait with a limit, one process, spawn."""
    assert agree(WORK + textwrap.dedent(launch), CODE)


def test_ranks_that_end_by_themselves() -> None:
    """Ranks of gloo with a short timeout fail soon after a peer: who asks each for its exit code learns of it."""
    launch = """
        def main(size):
            workers = [Process(target=work, args=(rank, size)) for rank in range(size)]
            for worker in workers:
                worker.join()
            sys.exit(any(worker.exitcode for worker in workers))
        """
    for told in (
        '"gloo", timeout=timedelta(seconds=30)',
        'backend="gloo", timeout=datetime.timedelta(minutes=2)',
    ):
        assert agree(WORK.replace('"gloo"', told) + textwrap.dedent(launch), CODE)
    for told in ('"gloo"', '"nccl", timeout=timedelta(seconds=30)', '"gloo", timeout=timedelta(hours=4)'):
        marked = textwrap.dedent(launch).replace("worker.join()", "worker.join()  # SPG712")
        assert agree(WORK.replace('"gloo"', told) + marked, CODE)
