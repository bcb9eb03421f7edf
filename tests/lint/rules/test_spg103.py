"""SPG103: arms with different collectives."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG103", "SPG104")


def test_unequal_arms() -> None:
    """Another order, another operation, another number of calls."""
    assert agree(
        """
        import torch.distributed as dist

        def swapped(x, y):
            if dist.get_rank() == 0:
                dist.broadcast(x, src=0)  # SPG103
                dist.all_reduce(y)
            else:
                dist.all_reduce(y)
                dist.broadcast(x, src=0)

        def another(x):
            if dist.get_rank() == 0:
                dist.all_gather_object([None], x)  # SPG103
            else:
                dist.barrier()

        def once_and_twice(x):
            if dist.get_rank() == 0:
                dist.barrier()
                dist.barrier()  # SPG103
            else:
                dist.barrier()

        def through_a_call(x):
            if dist.get_rank() == 0:
                first(x)  # SPG103
            else:
                dist.all_reduce(x)

        def first(x):
            dist.barrier()
        """,
        *ARMS,
    )


def test_equal_arms_are_silent() -> None:
    """The same operations in the same order, also through calls or with other buffers."""
    assert agree(
        """
        import torch.distributed as dist

        def same(x):
            if dist.get_rank() == 0:
                objects = [x]
                dist.broadcast_object_list(objects, src=0)
            else:
                objects = [None]
                dist.broadcast_object_list(objects, src=0)
            return objects[0]

        def scatter(parts, out):
            if dist.get_rank() == 0:
                dist.scatter(out, parts, src=0)
            else:
                dist.scatter(out, src=0)

        def wrapped(x):
            dist.barrier()

        def half_wrapped(x):
            if dist.get_rank() == 0:
                wrapped(x)
            else:
                dist.barrier()
        """,
        *ARMS,
    )


def test_known_miss_shapes() -> None:
    """The same operation on tensors of other shapes in each arm is not told apart."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def shapes():
            if dist.get_rank() == 0:
                dist.all_reduce(torch.zeros(3))
            else:
                dist.all_reduce(torch.zeros(4))
        """,
        *ARMS,
    )


def test_swapped_calls_on_groups_of_unknown_members() -> None:
    """The same calls on the same groups in another order in each arm: no membership explains that."""
    assert agree(
        """
        import torch.distributed as dist

        def two_groups(x, y, tensor_group, data_group):
            if dist.get_rank() % 2 == 0:
                dist.all_reduce(x, group=tensor_group)  # SPG103
                dist.broadcast(y, 0, group=data_group)
            else:
                dist.broadcast(y, 0, group=data_group)
                dist.all_reduce(x, group=tensor_group)

        class Exchange:
            def __init__(self, mesh):
                self.rows = mesh["rows"].get_group()
                self.columns = mesh["columns"].get_group()

            def sum(self, x):
                dist.all_reduce(x, group=self.rows)

            def share(self, x):
                dist.broadcast(x, 0, group=self.columns)

            def step(self, x):
                if dist.get_rank() == 0:
                    self.sum(x)  # SPG103
                    self.share(x)
                else:
                    self.share(x)
                    self.sum(x)

        def one_arm_more(x, y, tensor_group, data_group):
            if dist.get_rank() in (0, 1):
                dist.all_reduce(x, group=tensor_group)
            else:
                dist.broadcast(y, 0, group=data_group)
        """,
        "SPG103",
    )


def test_managers_that_some_ranks_enter() -> None:
    """What only one of two managers calls around a block stands at the with statement, not at the block's own calls."""
    assert agree(
        """
        import contextlib
        import time
        import torch
        import torch.distributed as dist

        class StopWatch:
            def __enter__(self):
                self.begun = time.perf_counter()
                return self

            def __exit__(self, kind, value, tb):
                if kind is None:
                    spent = torch.tensor([time.perf_counter() - self.begun])
                    dist.all_reduce(spent, op=dist.ReduceOp.MAX)
                return False

        @contextlib.contextmanager
        def timed():
            yield
            dist.barrier()

        @contextlib.contextmanager
        def silent():
            yield

        class Silent:
            def __enter__(self):
                return self

            def __exit__(self, *what):
                return None

        def by_name(x):
            watch = StopWatch() if dist.get_rank() == 0 else contextlib.nullcontext()
            with watch:  # SPG103
                dist.all_reduce(x)

        def inline(x):
            with StopWatch() if dist.get_rank() == 0 else contextlib.nullcontext():  # SPG103
                dist.all_reduce(x)

        def by_branch(x):
            if dist.get_rank() == 0:
                watch = timed()
            else:
                watch = silent()
            with torch.no_grad(), watch:  # SPG103
                dist.all_reduce(x)

        def by_class(x):
            kind = StopWatch if dist.get_rank() == 0 else Silent
            with kind():  # SPG103
                dist.all_reduce(x)

        def stacked(x):
            with contextlib.ExitStack() as stack:
                if dist.get_rank() == 0:
                    stack.enter_context(StopWatch())  # SPG104
                dist.all_reduce(x)

        def no_block(x):
            watch = StopWatch() if dist.get_rank() == 0 else contextlib.nullcontext()
            with watch:  # SPG104
                print(x)

        def chooser():
            return StopWatch() if dist.get_rank() == 0 else contextlib.nullcontext()

        def by_call(x):
            with chooser():  # SPG103
                dist.all_reduce(x)

        def right(x):
            watch = Silent() if dist.get_rank() == 0 else contextlib.nullcontext()
            with watch:
                dist.all_reduce(x)
            with StopWatch() if dist.is_initialized() else contextlib.nullcontext():
                dist.all_reduce(x)
        """,
        "SPG101",
        "SPG103",
        "SPG104",
        "SPG105",
    )


def test_exchanges_that_a_manager_puts_off() -> None:
    """The block's own backward pass, under `no_sync` on some ranks: at the with statement, which decides."""
    assert agree(
        """
        import contextlib

        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def inline(net, batches):
            model = DDP(net)
            window = 4 if dist.get_rank() == 0 else 2
            for i, batch in enumerate(batches):
                with contextlib.nullcontext() if i % window == 0 else model.no_sync():  # SPG103
                    loss = model(batch).sum()
                    loss.backward()

        def by_name(net, batches):
            model = DDP(net)
            for i, batch in enumerate(batches):
                if i % 4 == dist.get_rank():
                    window = model.no_sync()
                else:
                    window = contextlib.nullcontext()
                with window:  # SPG103
                    model(batch).sum().backward()

        def alike(net, batches):
            model = DDP(net)
            for i, batch in enumerate(batches):
                with contextlib.nullcontext() if i % 4 == 0 else model.no_sync():
                    model(batch).sum().backward()
        """,
        "SPG103",
    )


def test_the_finding_stands_where_the_arms_part() -> None:
    """What both arms call alike before they part is not what the reader must look at."""
    assert agree(
        """
        import torch.distributed as dist

        def behind_what_is_alike(x):
            if dist.get_rank() == 0:
                dist.all_reduce(x)
                dist.barrier()  # SPG103
            else:
                dist.all_reduce(x)
                dist.broadcast(x, src=0)

        def more_in_the_other(x):
            if dist.get_rank() == 0:
                dist.all_reduce(x)
            else:
                dist.all_reduce(x)
                dist.barrier()  # SPG103
        """,
        "SPG101",
        "SPG103",
    )


def test_groups_of_other_members_are_other_groups() -> None:
    """Ranks that make different groups at the same time wait for one another in vain; equal ones are equal."""
    assert agree(
        """
        import torch.distributed as dist

        def written_out():
            if dist.get_rank() > 0:
                return dist.new_group([0, 1])  # SPG106
            return dist.new_group([1])

        def by_size_of_the_world(world_size):
            world = dist.get_world_size()
            if dist.get_rank() == 0:
                return dist.new_group(list(range(1, world)))  # SPG103
            else:
                return dist.new_group(list(range(world)))

        def the_same_written_twice():
            world = dist.get_world_size()
            if dist.get_rank() == 0:
                return dist.new_group(list(range(world)))
            else:
                return dist.new_group(ranks=[r for r in range(world)])

        def not_known(ranks, others):
            if dist.get_rank() == 0:
                return dist.new_group(ranks)
            else:
                return dist.new_group(others)
        """,
        "SPG101",
        "SPG103",
        "SPG106",
    )


def test_steps_from_a_table_by_rank() -> None:
    """Where ranks take another function out of a table, the call is reported, not what stands in the function."""
    assert agree(
        """
        import torch.distributed as dist

        def fence(x):
            dist.barrier()

        def fold(x):
            dist.all_reduce(x)

        def plan(x):
            steps = [fence, fold] if dist.get_rank() == 0 else [fold, fence]
            for step in steps:
                step(x)  # SPG103

        def picked(x):
            step = fence if dist.get_rank() == 0 else fold
            step(x)  # SPG103

        def alike(x, by_size):
            step = fence if by_size else fold
            step(x)
            for step in (fence, fold):
                step(x)
        """,
        "SPG103",
    )
