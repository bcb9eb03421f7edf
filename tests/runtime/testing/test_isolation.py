"""What is per rank, what stays as it was, and that everything comes back."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("torch")
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

import spmdguard
from spmdguard.testing import CollectiveMismatch, Outcome, SimulatedWorld

NAMES = ("_world", "rendezvous", "_new_process_group_helper", "_new_group_with_tag")


def replaced() -> list[object]:
    """Everything that a simulation replaces."""
    return [*(getattr(c10d, name) for name in NAMES), sys.excepthook, threading.Thread.start]


def test_everything_comes_back_after_success_and_failure() -> None:
    """torch.distributed is what it was after a run, a mismatch, an error of a rank, and a wrong call."""
    SimulatedWorld(1).run(dist.get_rank)  # installs the region guard for good
    before = replaced()
    SimulatedWorld(2).run(dist.get_rank)
    with pytest.raises(CollectiveMismatch):
        SimulatedWorld(2).run(lambda: dist.get_rank() and dist.barrier())
    with pytest.raises(ZeroDivisionError):
        SimulatedWorld(2).run(lambda: 1 // 0)
    assert before == replaced()
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.get_rank()


def test_other_threads_see_the_process() -> None:
    """While ranks are simulated, a thread that none of them started has no process group."""
    seen: list[tuple[bool, bool]] = []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(dist.is_initialized).result(10)  # starts the thread

        def look() -> None:
            seen.append((dist.is_initialized(), pool.submit(dist.is_initialized).result(10)))

        SimulatedWorld(2).run(look)
    assert seen == [(True, False)] * 2


def test_threads_of_a_rank_belong_to_it() -> None:
    """A thread that a rank starts has the rank's number, environment and deferred error."""

    def look() -> tuple[int, str, bool]:
        seen: list[tuple[int, str]] = []

        def work() -> None:
            seen.append((dist.get_rank(), os.environ["RANK"]))
            if dist.get_rank() == 1:
                spmdguard.defer_error(OSError("in the background"))

        helper = threading.Thread(target=work)
        helper.start()
        helper.join(10)
        return *seen[0], spmdguard.has_deferred_error()

    assert SimulatedWorld(2).run(look) == [(0, "0", False), (1, "1", True)]
    assert not spmdguard.has_deferred_error()


def test_a_real_group_outside_keeps_working() -> None:
    """A process with a real group simulates others, and has its own group again afterwards."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert SimulatedWorld(3).run(dist.get_world_size) == [3] * 3
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert (dist.get_world_size(), tensor.item()) == (1, 1.0)
    finally:
        dist.destroy_process_group()


def test_stores_of_this_package_are_per_rank() -> None:
    """A deferred error, the refusal latch and the stop reason of one rank are not another's, nor the test's."""

    def work() -> tuple[bool, bool, tuple[int, ...]]:
        if dist.get_rank() == 1:
            spmdguard.defer_error(OSError("rank 1"))
        dist.barrier()
        own = spmdguard.has_deferred_error()
        stops = spmdguard.sync_should_stop()
        reason = spmdguard.stop_reason()
        assert reason is not None
        return own, stops, reason.ranks

    assert SimulatedWorld(3).run(work) == [(False, True, (1,)), (True, True, (1,)), (False, True, (1,))]
    assert not spmdguard.has_deferred_error()
    assert spmdguard.stop_reason() is None


def test_the_latch_is_per_rank() -> None:
    """A collective that failed on one rank makes that rank refuse, and no other."""

    @spmdguard.collective
    def fails_on_one() -> None:
        if dist.get_rank() == 0:
            raise RuntimeError("lost")

    def work() -> str:
        with contextlib.suppress(RuntimeError):
            fails_on_one()
        try:
            fails_on_one()
        except spmdguard.CommunicationBroken:
            return "refused"
        except RuntimeError:
            return "failed again"
        return "fine"

    assert SimulatedWorld(2).run(work) == ["refused", "fine"]


def test_ranks_know_who_they_are() -> None:
    """``is_main_process``, ``main_process_first`` and ``only="main"`` answer per rank."""
    order: list[int] = []

    @spmdguard.rank_local(only="main", default="left out")
    def on_main() -> str:
        return "main"

    def work() -> tuple[bool, str]:
        with spmdguard.main_process_first():
            order.append(dist.get_rank())
        return spmdguard.is_main_process(), on_main()

    assert SimulatedWorld(3, seed=5).run(work) == [(True, "main"), (False, "left out"), (False, "left out")]
    assert (order[0], sorted(order)) == (0, [0, 1, 2])


def test_code_that_initialises_itself() -> None:
    """``initialized=False``: the whole life cycle of the user's main function is simulated."""

    def main() -> tuple[bool, int, str, bool]:
        before = dist.is_initialized()
        dist.init_process_group("gloo")
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        backend = dist.get_backend()
        dist.destroy_process_group()
        dist.init_process_group("gloo", rank=dist.get_node_local_rank(), world_size=2)
        dist.barrier()
        dist.destroy_process_group()
        return before, int(tensor), backend, dist.is_initialized()

    assert SimulatedWorld(2, initialized=False).run(main) == [(False, 2, "gloo", False)] * 2


def test_a_rank_that_never_initialises_is_found() -> None:
    """``init_process_group`` waits for every rank, and says who never came."""

    def main() -> None:
        import os

        if os.environ["RANK"] == "1":
            return
        dist.init_process_group("gloo")

    with pytest.raises(CollectiveMismatch, match="rank 1 ended and will never come to init_process_group"):
        SimulatedWorld(2, initialized=False).run(main)


def test_wrong_ranks_given_to_init_are_refused() -> None:
    """A rank computed wrongly is told beside the simulated one."""

    def main() -> None:
        dist.init_process_group("gloo", rank=0, world_size=2)

    errors = [each.error for each in SimulatedWorld(2, initialized=False).outcomes(main)]
    assert "rank=0, world_size=2; this is simulated rank 1 of 2" in str(errors[1])


def test_without_torch_simulated() -> None:
    """``torch=False`` simulates this package alone; torch.distributed is left as it is."""

    def work() -> tuple[bool, bool, bool]:
        spmdguard.barrier()
        if spmdguard.is_main_process():
            spmdguard.defer_error(OSError("main"))
        return spmdguard.sync_should_stop(), spmdguard.has_deferred_error(), dist.is_initialized()

    assert SimulatedWorld(2, torch=False).run(work) == [(True, True, False), (True, False, False)]
    with pytest.raises(CollectiveMismatch, match="rank 0 ended and will never come to barrier"):
        SimulatedWorld(2, torch=False).run(
            lambda: None if spmdguard.is_main_process() else spmdguard.barrier()
        )


def test_simulations_do_not_nest() -> None:
    """A simulated rank that simulates a world is told so."""
    with pytest.raises(RuntimeError, match="cannot simulate a world itself"):
        SimulatedWorld(1).run(SimulatedWorld(1).run, dist.get_rank)


def test_the_region_guard_works_on_simulated_ranks() -> None:
    """A collective inside rank-local work does not start: plain, functional, on a sub-group, new_group."""
    import torch.distributed._functional_collectives as functional

    def work() -> list[str]:
        group = dist.new_group([0, 1])
        seen = []
        for begin in (
            lambda: dist.all_reduce(torch.ones(1)),
            lambda: functional.all_reduce(torch.ones(1), "sum", group),
            lambda: dist.barrier(group=group),
            lambda: dist.new_group([0]),
            lambda: dist.send(torch.ones(1), 1 - dist.get_rank()),
        ):
            spmdguard.try_or_defer(begin)
            error = spmdguard.deferred_error()
            assert isinstance(error, spmdguard.CollectiveInRankLocalError)
            seen.append(error.operation)
            with pytest.raises(spmdguard.CollectiveInRankLocalError):
                spmdguard.raise_if_deferred_error()
        dist.barrier()
        return seen

    assert SimulatedWorld(2).run(work) == [["all_reduce", "all_reduce", "barrier", "new_group", "send"]] * 2


def test_threads_of_ended_runs_are_gone() -> None:
    """A run leaves no thread behind, whatever happened in it."""
    before = threading.active_count()
    world = SimulatedWorld(4)
    world.kill(1, at="barrier")
    outcomes = world.outcomes(dist.barrier)
    assert isinstance(outcomes[0], Outcome)
    assert before == threading.active_count()


def test_tensors_of_a_run_are_freed() -> None:
    """After a run nothing holds the ranks' tensors."""
    import gc
    import weakref

    tensors: list[weakref.ref[torch.Tensor]] = []

    def work() -> None:
        tensor = torch.ones(8)
        tensors.append(weakref.ref(tensor))
        dist.all_reduce(tensor)
        handle = dist.all_reduce(tensor, async_op=True)
        assert handle is not None
        handle.wait()

    SimulatedWorld(2).run(work)
    gc.collect()
    assert [each() for each in tensors] == [None, None]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are kept on one processor on Linux only")
def test_ranks_share_one_processor_and_their_helpers_have_all() -> None:
    """A rank's thread runs where the other ranks run; threads that it starts, forked children and the caller do not."""

    def ask_child() -> int:
        pid = os.fork()
        if pid == 0:
            os._exit(len(os.sched_getaffinity(0)))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def ask() -> tuple[set[int], set[int], int]:
        helper: list[set[int]] = []
        each = threading.Thread(target=lambda: helper.append(os.sched_getaffinity(0)))
        each.start()
        each.join()
        return os.sched_getaffinity(0), helper[0], ask_child()

    before = os.sched_getaffinity(0)
    answers = SimulatedWorld(3).run(ask)
    own = {frozenset(processors) for processors, _, _ in answers}
    assert len(own) == 1 and all(len(processors) == 1 for processors in own)
    assert [(helper, child) for _, helper, child in answers] == [(before, len(before))] * 3
    assert os.sched_getaffinity(0) == before


def test_ranks_compute_on_one_thread_each() -> None:
    """As torchrun sets it; the process has its number back afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert SimulatedWorld(2).run(torch.get_num_threads) == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
