"""Kinds of control flow that look like a parting of ranks, each beside a sibling in which they do part.

The kinds were met in real packages; the snippets are made up. A kind that is silent while its sibling is reported
was mended where it arose, and not by saying less.
"""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105")


def test_arms_that_differ_by_a_fatal_check_only() -> None:
    """Two arms with the same collectives, one of which may end the rank; an operation more is found."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def load(shapes, full):
            if dist.get_rank() == 0:
                for name, shape in shapes.items():
                    if name not in full:
                        raise KeyError(name)
                    dist.broadcast(full[name], src=0)
            else:
                for name, shape in shapes.items():
                    dist.broadcast(torch.empty(shape), src=0)

        def load_and_wait(shapes, full):
            if dist.get_rank() == 0:
                for name, shape in shapes.items():
                    if name not in full:
                        raise KeyError(name)
                    dist.broadcast(full[name], src=0)  # SPG103
                    dist.barrier()
            else:
                for name, shape in shapes.items():
                    dist.broadcast(torch.empty(shape), src=0)
        """,
        *ARMS,
    )


def test_early_return_beside_a_fatal_check() -> None:
    """A return of the main rank from a reader in which the others may refuse the file; past a barrier it is found."""
    assert agree(
        """
        import torch.distributed as dist

        def read(path, place):
            if place != "meta":
                return place + path
            for part in path:
                if part not in "abc":
                    raise ValueError(part)
            return path

        def load(paths):
            place = "cpu" if dist.get_rank() == 0 else "meta"
            for path in paths:
                read(path, place)
            dist.barrier()

        def load_some(paths):
            if dist.get_rank() == 0:
                return paths  # SPG102
            for part in paths:
                if part not in "abc":
                    raise ValueError(part)
            dist.barrier()
        """,
        *ARMS,
    )


def test_function_handed_to_a_library() -> None:
    """An arm that hands a communicating function to a library may be matched; one that hands a silent one is not."""
    assert agree(
        """
        import search
        import torch.distributed as dist

        def tune(trials, train):
            def objective(trial):
                dist.broadcast_object_list([trial], src=0)
                return train(trial)

            if dist.get_rank() == 0:
                search.make().optimize(objective, trials)
            else:
                for _ in range(trials):
                    dist.broadcast_object_list([None], src=0)

        def tune_alone(trials, train):
            def objective(trial):
                return train(trial)

            if dist.get_rank() == 0:
                search.make().optimize(objective, trials)
            else:
                for _ in range(trials):
                    dist.broadcast_object_list([None], src=0)  # SPG101
        """,
        *ARMS,
    )


def test_method_of_the_same_name_that_delegates() -> None:
    """A class that hands work to an object which it holds does not call its own method of that name."""
    assert agree(
        """
        import torch.distributed as dist

        class Client:
            def __init__(self, make):
                self.make = make

            def write_weights(self, state):
                if dist.get_rank() == 0:
                    self.make().write_weights(state)
                dist.barrier()

        def finish(client, state):
            if dist.get_rank() == 0:
                client.write_weights(state)  # SPG104
        """,
        *ARMS,
    )


def test_fallback_for_a_run_of_one_process() -> None:
    """A raise in the arm of a run without other ranks; the same raise beside other ranks is found."""
    assert agree(
        """
        import torch.distributed as dist

        def vote(error, distributed):
            if not distributed:
                if error is not None:
                    raise error
                return
            flag = [error is not None]
            dist.all_gather_object([None], flag)

        def work(task, distributed):
            error = None
            try:
                task()
            except RuntimeError as caught:
                error = caught
            vote(error, distributed)
            dist.barrier()

        def tell(error, verbose):
            if not verbose:
                if error is not None:
                    raise error  # SPG205
                return
            flag = [error is not None]
            dist.all_gather_object([None], flag)

        def work_and_tell(task, verbose):
            error = None
            try:
                task()
            except RuntimeError as caught:
                error = caught
            tell(error, verbose)
            dist.barrier()
        """,
        "SPG205",
    )


def test_vote_in_a_loop_that_runs_once_at_least() -> None:
    """After a loop that surely runs, only what its rounds leave is there: the vote, not this rank's own flag."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def step(run, batches):
            for batch in batches:
                failed = 0
                try:
                    run(batch)
                except RuntimeError:
                    failed = 1
                done = False
                while not done:
                    flag = torch.tensor([failed])
                    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
                    failed = flag.item()
                    done = True
                if failed == 1:
                    continue
                dist.barrier()

        def step_alone(run, batches, done):
            for batch in batches:
                failed = 0
                try:
                    run(batch)
                except RuntimeError:
                    failed = 1
                while not done:
                    flag = torch.tensor([failed])
                    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
                    failed = flag.item()
                    done = True
                if failed == 1:
                    continue  # SPG102
                dist.barrier()
        """,
        *ARMS,
    )


def test_membership_of_the_default_group() -> None:
    """Every rank is in the default group; the members of another group are some ranks."""
    assert agree(
        """
        import torch.distributed as dist

        def send(objects, group=None):
            if dist.distributed_c10d._rank_not_in_group(group):
                return
            dist.broadcast_object_list(objects, src=0)

        def send_and_meet(objects, ranks):
            group = dist.new_group(ranks)
            if dist.distributed_c10d._rank_not_in_group(group):
                return  # SPG102
            dist.broadcast_object_list(objects, src=0, group=group)
            dist.barrier()
        """,
        *ARMS,
    )


def test_way_of_a_run_without_launcher() -> None:
    """What only a run without ranks does parts nobody; a handler that goes on in any run does."""
    assert agree(
        """
        import os

        import torch.distributed as dist

        RANK = int(os.getenv("RANK", -1))

        def train(batches, step):
            small = False
            for batch in batches:
                try:
                    step(batch)
                except RuntimeError:
                    if len(batch) < 2 or RANK != -1:
                        raise
                    small = True
                    break
            if small:
                return
            dist.barrier()

        def train_on(batches, step):
            small = False
            for batch in batches:
                try:
                    step(batch)
                except RuntimeError:
                    if len(batch) < 2 or RANK == 7:
                        raise
                    small = True
                    break
            if small:
                return  # SPG102
            dist.barrier()
        """,
        *ARMS,
    )


def test_flag_beside_the_test_of_the_rank() -> None:
    """A flag that all ranks share decides again what the arms do; an arm that forgets it is found."""
    assert agree(
        """
        import torch.distributed as dist

        def collect(item, alone):
            if alone and dist.get_rank() != 0:
                return None
            if not alone:
                dist.all_gather_object([None], item)
            return item

        def collect_always(item, alone):
            if alone and dist.get_rank() != 0:
                return None  # SPG102
            dist.all_gather_object([None], item)
            return item

        def send(names, spread):
            if spread and dist.get_rank() != 0:
                dist.gather_object(names, dst=0)
            else:
                if spread:
                    dist.gather_object(names, [None], dst=0)
        """,
        *ARMS,
    )


def test_wrapper_that_tells_of_errors_on_one_rank() -> None:
    """The same call in both arms, watched on one rank alone; a raise that only the one rank comes to is found."""
    assert agree(
        """
        import os

        import torch.distributed as dist

        def read(path):
            if "x" in path:
                raise ValueError(path)
            return path

        def watched(path):
            if dist.get_rank() != 0:
                return read(path)
            try:
                return read(path)
            except Exception:
                print("failed")
                raise

        def load(path):
            watched(path)
            dist.barrier()

        def load_first(path):
            if dist.get_rank() == 0:
                if not os.path.exists(path):
                    raise ValueError(path)  # SPG205
            dist.barrier()
        """,
        "SPG205",
    )


def test_generator_handed_to_a_library() -> None:
    """An arm that hands a communicating generator to a library may be matched; one that hands a silent one is not."""
    assert agree(
        """
        import sender
        import torch.distributed as dist

        def gathered(model):
            for name, value in model.named_parameters():
                dist.all_reduce(value)
                yield name, value

        def plain(model):
            for name, value in model.named_parameters():
                yield name, value

        def push(model):
            if dist.get_rank() == 0:
                sender.make().send(gathered(model))
            else:
                for _ in gathered(model):
                    pass

        def push_plainly(model):
            if dist.get_rank() == 0:
                sender.make().send(plain(model))
            else:
                for _ in gathered(model):  # SPG104
                    pass
        """,
        *ARMS,
    )


def test_tensor_of_another_mesh() -> None:
    """A tensor gathered by the members of a group is mostly theirs; on the main rank alone all ranks miss it."""
    assert agree(
        """
        import torch.distributed as dist

        def reduce(grad, group):
            if dist.get_rank() in dist.get_process_group_ranks(group):
                whole = grad.full_tensor()
                dist.all_reduce(whole, group=group)

        def save(grad):
            if dist.get_rank() == 0:
                return grad.full_tensor()  # SPG101
        """,
        *ARMS,
    )


def test_generator_handed_to_a_declaration_or_a_thread() -> None:
    """Who declares a method may run what it gets, and so may a thread; a class that does nothing with it does not."""
    assert agree(
        """
        import threading
        from typing import Protocol

        import engine
        import torch.distributed as dist

        class Sender(Protocol):
            def send(self, weights):
                '''Send them.'''
                ...

        class Threaded:
            def send(self, weights):
                thread = threading.Thread(target=lambda: engine.send(weights))
                thread.start()
                thread.join()

        class Counted:
            def send(self, weights):
                print("nothing to send")

        def weights(model):
            for param in model.parameters():
                dist.broadcast(param, src=0)
                yield param

        def sync(model, sender: Sender):
            if dist.get_rank() == 0:
                sender.send(weights(model))
            else:
                list(weights(model))

        def sync_threaded(model):
            if dist.get_rank() == 0:
                Threaded().send(weights(model))
            else:
                list(weights(model))

        def sync_counted(model):
            if dist.get_rank() == 0:
                Counted().send(weights(model))
            else:
                list(weights(model))  # SPG104
        """,
        *ARMS,
    )


def test_check_between_the_turns_of_the_ranks() -> None:
    """A check that all ranks pass or fail, between one rank's turn and the others'; another turn is one too many."""
    assert agree(
        """
        import torch.distributed as dist
        from accelerate import PartialState

        def prepare_all(datasets):
            state = PartialState()
            for columns in datasets:
                with state.main_process_first(), state.local_main_process_first():
                    if "labels" not in columns:
                        raise ValueError(columns)

        def prepare_again(datasets):
            for columns in datasets:
                if dist.get_rank() == 0:
                    if "labels" not in columns:
                        dist.barrier()  # SPG103
                        raise ValueError(columns)
                    dist.barrier()
                else:
                    dist.barrier()
                    if "labels" not in columns:
                        raise ValueError(columns)
                    dist.barrier()
        """,
        *ARMS,
    )
