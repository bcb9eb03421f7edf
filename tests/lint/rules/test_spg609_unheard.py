"""SPG609: errors that were kept, told or answered, and of which the end of the program says nothing."""

from __future__ import annotations

import textwrap

import pytest

from tests.lint.rules.marked import agree

CODE = "SPG609"
KEEPS = """
import os
import sys
import torch
import torch.distributed as dist
import spmdguard as sg
from spmdguard import (
    deferred_error, deferring, has_deferred_error, is_main_process, raise_if_deferred_error, rank_local,
    sync_should_stop, try_or_defer,
)

@rank_local
def write(part):
    torch.save(part, f"{dist.get_rank()}.pt")

def work(steps):
    for step in range(steps):
        part = torch.ones(1)
        dist.all_reduce(part)
        write(part)
        if sync_should_stop(has_deferred_error()):
            break
"""


@pytest.mark.parametrize(
    "end",
    [
        """
        def main():
            main_rank = dist.get_rank() == 0
            work(3)
            dist.destroy_process_group()
            if main_rank:
                raise_if_deferred_error()  # SPG609
        """,
        """
        def main():
            rank = int(os.environ["RANK"])
            work(3)
            dist.destroy_process_group()
            if rank != 0:
                return
            sg.raise_if_deferred_error()  # SPG609
        """,
        """
        @rank_local(only="main")
        def finish():
            raise_if_deferred_error()  # SPG609

        def main():
            work(3)
            finish()
            dist.destroy_process_group()
        """,
    ],
)
def test_kept_errors_that_some_ranks_raise(end: str) -> None:
    """A guard, an early return, a function of the main rank around the raise, while all ranks write."""
    assert agree(KEEPS + textwrap.dedent(end), CODE)


@pytest.mark.parametrize(
    "end",
    [
        """
        def main():
            work(3)
            dist.destroy_process_group()
            raise_if_deferred_error()
        """,
        """
        def main():
            main_rank = dist.get_rank() == 0
            work(3)
            dist.destroy_process_group()
            if main_rank:
                raise_if_deferred_error()
            elif has_deferred_error():
                sys.exit(1)
        """,
        """
        def main():
            value = torch.ones(1)
            dist.all_reduce(value)
            if is_main_process():
                try_or_defer(torch.save, value, "value.pt")
            stop = sync_should_stop(has_deferred_error())
            main_rank = is_main_process()
            dist.destroy_process_group()
            if main_rank:
                raise_if_deferred_error()
        """,
    ],
)
def test_kept_errors_that_their_ranks_raise(end: str) -> None:
    """On all ranks, by another exit elsewhere, on the only rank that keeps any."""
    assert agree(KEEPS + textwrap.dedent(end), CODE)


def test_decorators_that_swallow() -> None:
    """Loguru's `catch`, bare, called, by another name; not where it raises again, calls something, or nobody waits."""
    assert agree(
        """
        import sys

        import loguru
        import torch.distributed as dist
        from loguru import logger
        from loguru import logger as log

        @logger.catch  # SPG609
        def bare():
            dist.init_process_group("gloo")
            dist.barrier()

        @log.catch(message="failed")  # SPG609
        def called():
            bare()

        class Trainer:
            @loguru.logger.catch(reraise=False)  # SPG609
            def fit(self, x):
                dist.all_reduce(x)

        @logger.catch(reraise=True)
        def again():
            dist.barrier()

        @logger.catch(onerror=lambda _: sys.exit(1))
        def ends():
            dist.barrier()

        @logger.catch
        def alone(x):
            print(x)
        """,
        CODE,
    )


TELLS = """
import logging
import sys
import torch
import torch.distributed as dist

def write(x):
    with open(f"{dist.get_rank()}.txt", "a") as f:
        f.write(str(x))

def all_of(own):
    lists = [None] * dist.get_world_size()
    dist.all_gather_object(lists, own)
    return [text for texts in lists for text in texts]
"""


@pytest.mark.parametrize(
    "program",
    [
        """
        def work(steps):
            own = []
            for step in range(steps):
                dist.barrier()
                try:
                    write(step)
                except OSError as error:
                    own.append(repr(error))
                faults = all_of(own)
                if faults:
                    return faults  # SPG609
            return []

        def main():
            dist.init_process_group("gloo")
            faults = work(3)
            dist.destroy_process_group()
            for fault in faults:
                print(fault)
        """,
        """
        def main():
            dist.init_process_group("gloo")
            for step in range(3):
                failed = torch.zeros(1)
                try:
                    torch.save(failed, f"{dist.get_rank()}.pt")
                except Exception:
                    logging.exception("not written")
                    failed = torch.ones(1)
                dist.all_reduce(failed)
                if failed.item():
                    print("stopping")
                    break  # SPG609
            dist.destroy_process_group()
        """,
    ],
)
def test_errors_that_are_told_and_dropped(program: str) -> None:
    """Faults that are gathered and printed, a flag that is reduced and ends the loop."""
    assert agree(TELLS + textwrap.dedent(program), CODE)


@pytest.mark.parametrize(
    "program",
    [
        """
        def main():
            dist.init_process_group("gloo")
            own = []
            try:
                write(1)
            except OSError as error:
                own.append(repr(error))
            faults = all_of(own)
            dist.destroy_process_group()
            if faults:
                raise SystemExit(1)
        """,
        """
        def work(own):
            try:
                write(1)
            except OSError as error:
                own.append(repr(error))
            faults = all_of(own)
            if faults:
                return 1
            return 0

        def main():
            dist.init_process_group("gloo")
            code = work([])
            dist.destroy_process_group()
            sys.exit(code)
        """,
        """
        def main(batches):
            dist.init_process_group("gloo")
            items = iter(batches)
            while True:
                done = torch.zeros(1)
                try:
                    next(items)
                except StopIteration:
                    done.fill_(1)
                dist.all_reduce(done)
                if done.item():
                    break
            dist.destroy_process_group()
        """,
        """
        def main(path):
            dist.init_process_group("gloo")
            bad = torch.zeros(1)
            try:
                state = torch.load(path)
            except Exception:
                bad.fill_(1)
            dist.all_reduce(bad)
            while True:
                if bad.item():
                    break
                print(state)
            dist.destroy_process_group()
        """,
    ],
)
def test_errors_that_are_told_and_raised(program: str) -> None:
    """A raise, a status that is handed on, the end of the items, a file that is only read."""
    assert agree(TELLS + textwrap.dedent(program), CODE)


def test_answers_that_nobody_looks_at() -> None:
    """A saver that answers whether it could, called as a statement, by a method, with a number; and looked at."""
    assert agree(
        """
        import logging
        import torch
        import torch.distributed as dist
        from safetensors.torch import save_file

        def save(path, state):
            try:
                torch.save(state, path)
            except Exception:
                logging.exception("not written")
                return False
            return True

        class Saver:
            def write(self, path, state):
                try:
                    save_file(state, path)
                    return 0
                except OSError as error:
                    print(error)
                    return -1
            def step(self, path, state):
                dist.barrier()
                if dist.get_rank() == 0:
                    self.write(path, state)  # SPG609

        def dropped(path, model):
            if dist.get_rank() == 0:
                save(path, model.state_dict())  # SPG609
            dist.barrier()

        def looked_at(path, model):
            ok = torch.ones(1)
            if dist.get_rank() == 0:
                ok.fill_(float(save(path, model.state_dict())))
            dist.broadcast(ok, src=0)
            if not ok.item():
                raise RuntimeError(path)

        def asked(path, model):
            if dist.get_rank() == 0 and not save(path, model.state_dict()):
                print("again")
            dist.barrier()

        def save_quietly(path, state):
            try:
                torch.save(state, path)
            except Exception:
                logging.exception("not written")

        def without_answer(path, model):
            if dist.get_rank() == 0:
                save_quietly(path, model.state_dict())
            dist.barrier()

        def remember(path, state, failures):
            try:
                torch.save(state, path)
            except Exception as error:
                failures.append(error)
                return False
            return True

        def kept(path, model, failures):
            if dist.get_rank() == 0:
                remember(path, model.state_dict(), failures)
            dist.barrier()
        """,
        CODE,
    )
