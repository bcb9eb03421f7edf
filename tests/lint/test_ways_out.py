"""States and ways out: what a value is where a handler, a finally block or a context manager ends a block early."""

from __future__ import annotations

from tests.lint.rules.marked import agree

PARTING = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105", "SPG205", "SPG206", "SPG401", "SPG402")


def test_values_at_every_way_out() -> None:
    """A value that depends on where a block was left is as rank-varying as the way out."""
    assert agree(
        """
        import contextlib
        import torch.distributed as dist

        class StepError(Exception):
            pass

        class Section:
            def __enter__(self):
                return self
            def __exit__(self, kind, value, trace):
                return kind is not None and issubclass(kind, StepError)

        @contextlib.contextmanager
        def section():
            try:
                yield
            except StepError:
                pass

        def where_it_raises(rank):
            x = 0
            try:
                if rank == 0:
                    raise ValueError
                x = 1
                raise ValueError
            except ValueError:
                if x:
                    dist.barrier()  # SPG101

        def returns_through_finally(rank):
            try:
                x = 1
                if rank == 0:
                    return
                x = 0
            finally:
                if x:
                    dist.barrier()  # SPG101

        def breaks_through_finally(rank):
            while True:
                try:
                    break
                finally:
                    done = rank == 0
            if done:
                dist.barrier()  # SPG101

        def object_swallows(rank):
            x = 1
            with Section():
                if rank == 0:
                    raise StepError
                x = 0
            if x:
                dist.barrier()  # SPG101

        def generator_swallows(rank):
            x = 1
            with section():
                if rank == 0:
                    raise StepError
                x = 0
            if x:
                dist.barrier()  # SPG101

        def always_swallowed(rank):
            with section():
                raise StepError
            if rank == 0:
                dist.barrier()  # SPG101

        def caught_further_out(rank):
            try:
                try:
                    x = 1
                    if rank == 0:
                        raise KeyError
                    x = 0
                except ValueError:
                    pass
            except KeyError:
                pass
            if x:
                dist.barrier()  # SPG101

        class Box:
            def __init__(self):
                self.x = 0

            def work(self, rank):
                self.x = 1
                if rank == 0:
                    raise KeyError
                self.x = 0

        def raised_in_a_call(rank):
            box = Box()
            try:
                box.work(rank)
            except KeyError:
                pass
            if box.x:
                dist.barrier()  # SPG101

        def object_keeps_step(rank):
            with Section():
                if rank == 0:
                    raise StepError
            dist.barrier()

        def generator_keeps_step(rank):
            with section():
                if rank == 0:
                    raise StepError
            dist.barrier()
        """,
        *PARTING,
    )


def test_a_rank_raises_in_a_handler() -> None:
    """A raise that the rank decides parts the ranks in a handler too; one that all reach does not."""
    assert agree(
        """
        import torch.distributed as dist

        def by_rank(world):
            try:
                if world > 2:
                    raise ValueError("x")
            except ValueError:
                if dist.get_rank() == 0:
                    raise RuntimeError("y")  # SPG205
            dist.barrier()

        def by_all(world):
            try:
                if world > 2:
                    raise ValueError("x")
            except ValueError:
                if dist.get_rank() == 0:
                    print("trouble")
                raise
            dist.barrier()
        """,
        *PARTING,
    )


def test_fatal_preconditions_are_told_from_meant_raises() -> None:
    """A raise in a rank's arm counts where rank and world size decide it, or where it is caught."""
    assert agree(
        """
        import torch.distributed as dist

        def by_world():
            rank, world = dist.get_rank(), dist.get_world_size()
            if rank == 1:
                pass
            elif world == 2:
                raise RuntimeError("two")  # SPG205
            dist.barrier()

        def caught(strict):
            try:
                if dist.get_rank() == 0:
                    if strict:
                        raise ValueError("strict")  # SPG205
                dist.barrier()
            except ValueError:
                pass

        def precondition(path):
            if dist.get_rank() == 0:
                if not path:
                    raise ValueError("no path")
            dist.barrier()
        """,
        *PARTING,
    )


def test_a_list_that_only_the_root_has() -> None:
    """``gather_object`` fills a list; that other ranks have None in its place stays so."""
    assert agree(
        """
        import torch.distributed as dist

        def gather(value):
            rows = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
            dist.gather_object(value, rows, dst=0)
            if rows is None:
                return  # SPG102
            dist.barrier()

        def told(value):
            box = [value] if dist.get_rank() == 0 else [None]
            dist.broadcast_object_list(box, src=0)
            if box[0] is None:
                return
            dist.barrier()
        """,
        *PARTING,
    )


def test_handlers_that_raise_again_by_choice() -> None:
    """Where the rank or a setting decides whether a handler raises again, both answers are compared."""
    assert agree(
        """
        import os
        import torch.distributed as dist

        STRICT = os.environ.get("STRICT") == "1"

        class Gate:
            def __init__(self, open):
                self.open = open
            def __enter__(self):
                return self
            def __exit__(self, kind, value, trace):
                return self.open

        def in_rounds_of_some_ranks(world):
            rank = dist.get_rank()
            for _ in range(rank):  # SPG401
                try:
                    if world < 4:
                        raise RuntimeError("gone")
                except RuntimeError:
                    if rank == 2:
                        continue
                    raise  # SPG205
            dist.barrier()

        def by_setting():
            try:
                if dist.get_rank() == 1:
                    raise ValueError("gone")  # SPG205
            except ValueError:
                if STRICT:
                    raise
            dist.barrier()

        def by_a_manager(open):
            with Gate(open):
                if dist.get_rank() == 1:
                    raise ValueError("gone")  # SPG205
            dist.barrier()

        def by_the_exception():
            try:
                if dist.get_rank() == 1:
                    raise OSError(2, "gone")
            except OSError as error:
                if error.errno != 2:
                    raise
            dist.barrier()
        """,
        *PARTING,
    )


def test_finally_that_ends_an_exception() -> None:
    """Where `finally` leaves by return, break or continue, the exception ends there and all ranks go on."""
    assert agree(
        """
        import torch.distributed as dist

        def returns():
            try:
                raise RuntimeError("gone")
            finally:
                return

        def after_a_call(x):
            dist.barrier()
            returns()
            if dist.get_rank() == 1:
                dist.all_reduce(x)  # SPG101

        def after_a_loop(x):
            dist.barrier()
            for _ in range(2):
                try:
                    raise RuntimeError("gone")
                finally:
                    break
            if dist.get_rank() == 1:
                dist.all_reduce(x)  # SPG101

        def nobody_comes_here(x):
            dist.barrier()
            try:
                raise RuntimeError("gone")
            finally:
                print("left")
            if dist.get_rank() == 1:
                dist.all_reduce(x)
        """,
        "SPG101",
    )


def test_one_rank_that_alone_looks_at_an_option() -> None:
    """That an option is one of the known words is asked on one rank only: the others go on, whatever it is."""
    assert agree(
        """
        import torch.distributed as dist

        def chain(args):
            if dist.get_rank() == 0:
                if args.logger == "tensorboard":
                    print("one")
                elif args.logger == "wandb":
                    print("two")
                else:
                    raise ValueError(args.logger)  # SPG205
            dist.barrier()

        def listed(logger):
            if dist.get_rank() == 0:
                if logger not in ("tensorboard", "wandb"):
                    raise ValueError(logger)  # SPG205
            dist.barrier()

        def asked_by_all(args):
            if args.logger not in ("tensorboard", "wandb"):
                raise ValueError(args.logger)
            if dist.get_rank() == 0:
                print(args.logger)
            dist.barrier()

        def as_kind(logger):
            if logger != "tensorboard":
                raise ValueError(logger)
            return print

        def further_in(args):
            if dist.get_rank() == 0:
                as_kind(args.logger)("ready")
            dist.barrier()

        def told_to_all(args):
            wrong = [None]
            if dist.get_rank() == 0:
                wrong = [args.logger not in ("tensorboard", "wandb")]
            dist.broadcast_object_list(wrong)
            if wrong[0]:
                raise ValueError(args.logger)
            dist.barrier()
        """,
        *PARTING,
    )


def test_an_operation_in_a_clause_that_the_body_itself_leads_to() -> None:
    """Where the body raises, its clause is an ordinary way through the loop."""
    assert agree(
        """
        import torch.distributed as dist

        class StepError(Exception):
            pass

        def always(n):
            for _ in range(dist.get_rank() * 2):
                for _ in range(n):
                    try:
                        raise StepError("gone")
                    except StepError:
                        dist.barrier()  # SPG401

        def sometimes(n, flags):
            for _ in range(dist.get_rank() * 2):
                for flag in flags:
                    try:
                        if flag:
                            raise StepError("gone")
                    except StepError:
                        dist.barrier()  # SPG401

        def alike(n):
            for _ in range(n * 2):
                for _ in range(n):
                    try:
                        raise StepError("gone")
                    except StepError:
                        dist.barrier()
        """,
        "SPG401",
    )
