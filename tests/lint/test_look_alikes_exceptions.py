"""Kinds of control flow around exceptions that look like a parting of ranks, each beside a sibling."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105")


def test_check_between_two_halves_of_a_barrier() -> None:
    """A check that every rank makes between the two halves of a barrier; halves that leave a rank out are found."""
    assert agree(
        """
        from contextlib import contextmanager
        import torch.distributed as dist

        @contextmanager
        def main_first(rank):
            if rank not in {-1, 0}:
                dist.barrier()
            yield
            if rank == 0:
                dist.barrier()

        @contextmanager
        def first_two_first(rank):
            if rank not in {0, 1}:
                dist.barrier()  # SPG101
            yield
            if rank == 0:
                dist.barrier()  # SPG101

        def checked(path, strict):
            if strict:
                raise ValueError(path)
            return path

        def prepare(path, strict):
            with main_first(dist.get_rank()):
                return checked(path, strict)

        def prepare_first_two(path, strict):
            with first_two_first(dist.get_rank()):
                return checked(path, strict)
        """,
        *ARMS,
    )


def test_block_of_a_manager_left_by_a_jump() -> None:
    """A return, break or continue in a with block runs what its manager does after the yield, and then leaves."""
    assert agree(
        """
        from contextlib import contextmanager
        import torch.distributed as dist

        @contextmanager
        def main_first(rank):
            if rank != 0:
                dist.barrier()
            yield
            if rank == 0:
                dist.barrier()

        @contextmanager
        def fenced():
            try:
                yield
            finally:
                dist.barrier()

        def load(path):
            with main_first(dist.get_rank()):
                return path.read_text()

        def skip(items):
            for item in items:
                with fenced():
                    if dist.get_rank() == 0:
                        continue
                    item.read()

        def last(items):
            with fenced():
                if dist.get_rank() == 0:
                    return 1
            return 2

        def past(items):
            with fenced():
                if dist.get_rank() == 0:
                    return  # SPG102
            dist.barrier()

        def stop(items):
            for item in items:
                with fenced():
                    if dist.get_rank() == 0:
                        break  # SPG102
                    item.read()
        """,
        *ARMS,
    )


def test_teardown_by_a_manager_that_a_return_resumes() -> None:
    """What a manager ends after its yield is ended when the block returns, too."""
    assert agree(
        """
        from contextlib import contextmanager
        import torch.distributed as dist

        @contextmanager
        def group():
            dist.init_process_group("gloo")
            yield
            dist.destroy_process_group()

        def work(step):
            with group():
                return step()

        def run(step):
            work(step)
            dist.barrier()  # SPG602
        """,
        "SPG602",
    )


def test_memory_that_runs_out_without_exchange() -> None:
    """A backward pass under ``no_sync`` may run out of memory on one rank; one that exchanges gradients may not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def attempt(model, x, parts):
            for piece in x.chunk(parts):
                model(piece).sum().backward()

        def agreed(net, x, parts):
            model = DDP(net)
            full = torch.zeros(1)
            try:
                with model.no_sync():
                    attempt(model, x, parts)
            except torch.cuda.OutOfMemoryError:
                full.fill_(1)
            dist.all_reduce(full)
            return full.item()

        def alone(net, x, parts):
            model = DDP(net)
            full = torch.zeros(1)
            try:
                attempt(model, x, parts)
            except torch.cuda.OutOfMemoryError:  # SPG203
                full.fill_(1)
            dist.all_reduce(full)
            return full.item()
        """,
        "SPG203",
    )


def test_pieces_as_many_as_asked_for() -> None:
    """``x.chunk(n)`` has n pieces however long this rank's own batch is; ``x.split(n)`` has as many as there are."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def own():
            generator = torch.Generator().manual_seed(dist.get_rank())
            rows = int(torch.randint(10, 40, (), generator=generator))
            return torch.randn(rows, 5, generator=generator)

        def in_four():
            for piece in own().chunk(4):
                dist.all_reduce(piece.sum())

        def of_four():
            for piece in own().split(4):
                dist.all_reduce(piece.sum())  # SPG401
        """,
        "SPG401",
    )


def test_objects_that_are_asked_for_a_length() -> None:
    """Each rank has a length or an attribute, or none has; what is read may be missing on one."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def by_length(loader):
            try:
                rounds = len(loader)
            except Exception:
                rounds = loader.num_batches
            for _ in range(rounds):
                dist.barrier()

        def by_attribute(model):
            try:
                depth = model.config.depth
            except Exception:
                depth = 3
            for _ in range(depth):
                dist.barrier()

        def by_key(settings):
            try:
                rounds = settings["rounds"]
            except Exception:
                rounds = 3
            for _ in range(rounds):
                dist.barrier()  # SPG401

        def by_file(path):
            try:
                rounds = len(open(path).read())
            except Exception:
                rounds = 3
            for _ in range(rounds):
                dist.barrier()  # SPG401

        def known_class_alone(parse, text):
            try:
                rounds = parse(text)
            except KeyError:
                rounds = 3
            except Exception:
                print("again")
                raise
            for _ in range(rounds):
                dist.barrier()

        def any_class(parse, text):
            try:
                rounds = parse(text)
            except KeyError:
                rounds = 3
            except Exception:
                rounds = 4
            for _ in range(rounds):
                dist.barrier()  # SPG401
        """,
        "SPG401",
    )
