"""Ranks that part ways: found at once, with both call sites and what every rank was doing."""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")
import torch
import torch.distributed as dist

import spmdguard
from spmdguard.testing import CollectiveMismatch, SimulatedWorld

THIS = Path(__file__).name


def line_of(text: str) -> int:
    """The one line of this file that ends with ``# text``."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# {text}")]
    return found


def mismatch_of(fn: Callable[[], object], ranks: int = 3, seed: int = 0) -> CollectiveMismatch:
    with pytest.raises(CollectiveMismatch) as caught:
        SimulatedWorld(ranks, seed).run(fn)
    return caught.value


@pytest.mark.parametrize("seed", range(4))
def test_different_operations_name_both_lines(seed: int) -> None:
    """Two ranks in different collectives: the error has both with file and line, on any schedule."""

    def part_ways() -> None:
        if dist.get_rank() == 1:
            dist.broadcast(torch.ones(2), 0)  # rank 1
        else:
            dist.all_reduce(torch.ones(2))  # the others

    error = mismatch_of(part_ways, seed=seed)
    assert (error.kind, error.title) == ("different calls", "ranks began different collectives")
    for rank, text in error.calls.items():
        place = f"{THIS}:{line_of('rank 1' if rank == 1 else 'the others')} in part_ways"
        assert place in text
    assert 1 in error.calls and len(error.calls) >= 2
    assert f"rank 1: broadcast(root=0, shape=[2], dtype=float32) at {error.calls[1].split(' at ')[1]}" in str(
        error
    )


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("root", lambda rank: dist.broadcast(torch.ones(2), rank)),
        ("shape", lambda rank: dist.all_reduce(torch.ones(2 + rank))),
        (
            "dtype",
            lambda rank: dist.all_reduce(torch.ones(2, dtype=torch.float64 if rank else torch.float32)),
        ),
        ("op", lambda rank: dist.all_reduce(torch.ones(2), dist.ReduceOp.MAX if rank else dist.ReduceOp.MIN)),
        ("root and shape", lambda rank: dist.reduce(torch.ones(2 + rank), rank)),
        ("ranks", lambda rank: dist.new_group([0, rank] if rank else [0, 1])),
    ],
)
def test_disagreement_on_arguments_is_told_by_name(what: str, call: Callable[[int], object]) -> None:
    """The same collective with another root, shape, type or reduction is told by that name."""
    error = mismatch_of(lambda: call(dist.get_rank()))
    assert error.kind == "different calls"
    assert re.match(rf"ranks disagree on {what} of \w+", error.title), error.title


def test_sizes_that_do_not_fit_are_told_with_both_ranks() -> None:
    """A receive buffer of another size than what is sent is told with both ranks and shapes."""

    def gather() -> None:
        rank = dist.get_rank()
        outputs = [torch.zeros(2) for _ in range(3)]
        dist.all_gather(outputs, torch.zeros(3 if rank == 1 else 2))

    assert mismatch_of(gather).title == (
        "all_gather: group rank 1 gives float32 [3], group rank 0 expects float32 [2] from it"
    )


def test_a_rank_that_returned_is_named() -> None:
    """One rank ends while the others wait: its number, that it returned, and where the others wait."""

    def leave_early() -> None:
        if dist.get_rank() == 2:
            return
        dist.barrier()  # they wait

    error = mismatch_of(leave_early)
    assert (error.kind, error.missing) == ("rank ended", (2,))
    assert error.title == "rank 2 ended and will never come to barrier"
    assert error.doing[2] == "returned"
    assert {0, 1} == set(error.calls)
    assert all(f"{THIS}:{line_of('they wait')} in leave_early" in text for text in error.calls.values())


def test_a_rank_that_raised_is_the_cause() -> None:
    """One rank raises while the others wait: its error is the cause, and told in the text."""

    def fail() -> None:
        if dist.get_rank() == 1:
            raise OSError("disk full")
        spmdguard.barrier()

    error = mismatch_of(fail)
    assert repr(error.__cause__) == "OSError('disk full')"
    assert error.doing[1] == "raised OSError: disk full"
    assert "rank 1: raised OSError: disk full" in str(error)


def test_a_rank_that_destroyed_its_group_is_missing() -> None:
    """A rank that left the group cannot come any more, though it still runs."""

    def leave_group() -> None:
        if dist.get_rank() == 0:
            dist.destroy_process_group()
            return
        dist.barrier()

    assert mismatch_of(leave_group).missing == (0,)


def test_waiting_for_each_other_is_a_deadlock() -> None:
    """Two groups used in another order: no rank can run, which is found without a timeout."""

    def cross() -> None:
        first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
        order = (first, second) if dist.get_rank() == 0 else (second, first)
        for group in order:
            dist.barrier(group=group)

    error = mismatch_of(cross, ranks=2)
    assert (error.kind, error.title) == ("deadlock", "deadlock: ranks 0-1 wait for each other")
    assert all("waits in barrier" in text for text in error.doing.values())


def test_sending_to_each_other_is_a_deadlock() -> None:
    """Nothing buffers a send, so two ranks that both send first wait for each other."""

    def send_first() -> None:
        other = 1 - dist.get_rank()
        dist.send(torch.ones(1), other)
        dist.recv(torch.ones(1), other)

    assert mismatch_of(send_first, ranks=2).kind == "deadlock"


def test_transfers_of_other_sizes_are_told() -> None:
    """A send that meets a receive of another size is a mismatch with both lines."""

    def transfer() -> None:
        if dist.get_rank() == 0:
            dist.send(torch.ones(3), 1)  # sends
        else:
            dist.recv(torch.ones(2), 0)  # receives

    error = mismatch_of(transfer, ranks=2)
    assert error.title == "send of float32 [3] meets recv of float32 [2]"
    assert f":{line_of('sends')} in" in error.calls[0]
    assert f":{line_of('receives')} in" in error.calls[1]


def test_one_collective_too_many_in_a_loop_is_found_at_the_right_call() -> None:
    """Ranks that run a loop a different number of times meet different lines after it."""

    def train() -> None:
        for _ in range(3 if dist.get_rank() else 2):
            dist.all_reduce(torch.ones(2))  # in the loop
        dist.barrier()  # after the loop

    error = mismatch_of(train, ranks=2)
    assert f":{line_of('in the loop')} in train" in error.calls[1]
    assert f":{line_of('after the loop')} in train" in error.calls[0]


def test_a_swallowed_mismatch_is_still_reported() -> None:
    """Code that catches the error does not hide it from the test."""

    def swallow() -> None:
        try:
            if dist.get_rank():
                dist.barrier()
        except RuntimeError:
            pass

    assert mismatch_of(swallow).kind == "rank ended"


def test_a_broken_group_stays_broken() -> None:
    """After a mismatch every later call on the group fails at once, and other groups live on."""
    seen: list[object] = []

    def go_on() -> None:
        other = dist.new_group([0, 1])
        for group in (None, None, other):
            try:
                dist.barrier(group=group) if dist.get_rank() or group else dist.all_reduce(torch.ones(1))
                seen.append("met")
            except CollectiveMismatch as exc:
                seen.append(exc.kind)

    mismatch_of(go_on, ranks=2)
    assert sorted(map(str, seen)) == ["different calls"] * 4 + ["met"] * 2


def test_polling_for_something_that_never_comes_ends() -> None:
    """A rank that asks again and again whether an operation is done gets the error too."""

    def poll() -> None:
        if dist.get_rank() == 0:
            handle = dist.barrier(async_op=True)
            while not handle.is_completed():
                pass
            handle.wait()

    assert mismatch_of(poll, ranks=2).missing == (1,)


def test_operations_of_this_package_and_of_torch_share_the_order() -> None:
    """``sync_should_stop`` against ``all_reduce`` on one group is a mismatch, told by names users know."""

    def mix() -> None:
        if dist.get_rank():
            spmdguard.sync_should_stop()
        else:
            dist.all_reduce(torch.ones(1))

    error = mismatch_of(mix, ranks=2)
    assert {text.split(" at ")[0].split("(")[0] for text in error.calls.values()} == {
        "all_reduce",
        "sync_should_stop",
    }


def test_object_collectives_are_told_by_the_name_that_was_called() -> None:
    """What an object collective is made of is shown with the function that the user called."""

    def part_ways() -> None:
        if dist.get_rank():
            dist.all_gather_object([None, None], 1)
        else:
            dist.barrier()

    error = mismatch_of(part_ways, ranks=2)
    assert error.calls[1].startswith("all_gather of all_gather_object(dtype=int64) at ")


def test_missing_ranks_are_explained_by_the_package() -> None:
    """``RanksMissing`` of ``spmdguard.barrier`` names the ranks that did not come, as on real ranks."""

    def leave() -> None:
        if dist.get_rank() != 1:
            spmdguard.barrier("evaluation")

    errors = [each.error for each in SimulatedWorld(3).outcomes(leave)]
    assert isinstance(errors[0], spmdguard.RanksMissing)
    assert (errors[0].missing, errors[0].arrived, errors[1]) == ((1,), (0, 2), None)


def test_the_error_can_be_pickled() -> None:
    """It goes through pickle, as test runners that use processes need."""

    def leave() -> None:
        if dist.get_rank():
            dist.barrier()

    error = mismatch_of(leave)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(error), error.doing) == (str(copy), copy.doing)


def test_collectives_on_helper_threads_are_refused() -> None:
    """A collective or agreement begun on another thread of a rank says that it is not simulated."""

    said: list[str] = []

    def use_thread() -> None:
        tensor, group = torch.ones(1), dist.group.WORLD

        def reduce() -> None:
            for begin in (lambda: group.allreduce([tensor]), spmdguard.barrier):
                with pytest.raises((RuntimeError, spmdguard.RanksMissing)) as caught:
                    begin()
                said.append(str(caught.value.__cause__ or caught.value))

        helper = threading.Thread(target=reduce)
        helper.start()
        helper.join(10)

    SimulatedWorld(1).run(use_thread)
    assert said[0].startswith("all_reduce was begun on a helper thread of simulated rank 0")
    assert said[1].startswith("barrier was begun on a helper thread of simulated rank 0")
