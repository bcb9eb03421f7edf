"""SPG102: exits that skip a collective."""

from __future__ import annotations

import textwrap

from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

from tests.lint.rules.marked import agree

EXITS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG205")


def test_every_kind_of_exit() -> None:
    """Return, break, continue and the end of the process are reported where they stand."""
    assert agree(
        """
        import os
        import sys
        import torch.distributed as dist

        def returns(x):
            if dist.get_rank() > 0:
                return None  # SPG102
            dist.all_reduce(x)

        def breaks(xs):
            for x in xs:
                if dist.get_rank() == 1:
                    break  # SPG102
                dist.all_reduce(x)

        def continues(xs):
            for x in xs:
                dist.broadcast(x, src=0)
                if dist.get_rank() == 1:
                    continue  # SPG102
                dist.all_reduce(x)

        def ends(x):
            if dist.get_rank() == 1:
                sys.exit(3)  # SPG102
            dist.all_reduce(x)

        def ends_hard(x):
            if dist.get_rank() == 1:
                os._exit(3)  # SPG102
            dist.all_reduce(x)
        """,
        *EXITS,
    )


def test_collective_far_below() -> None:
    """The skipped collective may stand in a later round, behind the loop, or in the caller."""
    assert agree(
        """
        import torch.distributed as dist

        def next_round(xs):
            for x in xs:
                dist.all_reduce(x)
                if dist.get_rank() == 1:
                    break  # SPG102

        def nested(xs):
            for row in xs:
                for x in row:
                    if dist.get_rank() == 1:
                        break  # SPG102
                    dist.all_reduce(x)

        def helper(x):
            if dist.get_rank() == 1:
                return False
            return True

        def caller(x):
            if not helper(x):
                return  # SPG102
            dist.all_reduce(x)
        """,
        *EXITS,
    )


def test_own_data_decides() -> None:
    """An exit under this rank's loss or batch is as good as one under the rank."""
    assert agree(
        """
        import math
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def skip_empty(loader: DataLoader):
            for batch in loader:
                if batch["mask"].sum() == 0:
                    continue  # SPG102
                dist.all_reduce(batch["x"])

        def stop_on_nan(model, loader: DataLoader):
            for batch in loader:
                loss = model(batch)
                if not torch.isfinite(loss):
                    return  # SPG102
                dist.all_reduce(loss)
        """,
        *EXITS,
    )


def test_shared_decisions_are_silent() -> None:
    """An exit that all ranks take, or that skips nothing, is no finding."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def agreed(model, loader: DataLoader):
            for batch in loader:
                loss = model(batch)
                bad = torch.isnan(loss).int()
                dist.all_reduce(bad, op=dist.ReduceOp.MAX)
                if bad.item():
                    break
                dist.all_reduce(loss)

        def after_the_last(x):
            dist.all_reduce(x)
            if dist.get_rank() != 0:
                return None
            return x.item()

        def single_process(x):
            if dist.get_world_size() == 1:
                return x
            dist.all_reduce(x)
            return x

        def by_step(x, step, every):
            if step % every:
                return
            dist.all_reduce(x)

        def both_ways(x):
            if dist.get_rank() == 0:
                dist.all_reduce(x)
                return 1
            dist.all_reduce(x)
            return 2
        """,
        *EXITS,
    )


def test_known_miss_unknown_caller() -> None:
    """An exit is no finding where nothing in the project calls a collective after it."""
    assert agree(
        """
        import torch.distributed as dist

        def hook(x):
            if dist.get_rank() != 0:
                return
            print(x)
        """,
        *EXITS,
    )


def test_handlers_that_leave_on_one_rank() -> None:
    """A handler under a test of the rank, or around what is this rank's own, returns past a collective."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def load(path):
            state = [None]
            if dist.get_rank() == 0:
                try:
                    state[0] = torch.load(path)
                except FileNotFoundError:
                    return None  # SPG102
            dist.broadcast_object_list(state, src=0)
            return state[0]

        def log_each(log, x):
            for step in range(10):
                dist.all_reduce(x)
                if dist.get_rank() == 0:
                    try:
                        log(step)
                    except Exception:
                        break  # SPG102

        def told(path):
            state = [None]
            if dist.get_rank() == 0:
                try:
                    state[0] = torch.load(path)
                except FileNotFoundError:
                    pass
            dist.broadcast_object_list(state, src=0)

        def read_on_main(path):
            if dist.get_rank() == 0:
                return read(path)
            return None

        def read(path):
            try:
                return open(path).read()
            except OSError:
                return None

        def before_all_meet(path):
            read_on_main(path)
            dist.barrier()

        def skips_files(paths):
            if dist.get_rank() == 0:
                for path in paths:
                    try:
                        text = open(path).read()
                    except OSError:
                        continue
                    print(text)
            dist.barrier()
        """,
        "SPG102",
        "SPG202",
    )


def test_items_that_some_ranks_do_not_find() -> None:
    """``shares[rank]`` under a handler of the ``KeyError``: ranks without an item go another way."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        SHARES = {1: 0.5, 2: 0.25, 3: 0.125}

        def weigh(rank):
            cell = torch.zeros(1)
            try:
                cell.fill_(SHARES[rank])  # SPG102
            except KeyError:
                cell.fill_(1.0)
            else:
                dist.broadcast(cell, src=0)
            return cell

        def main():
            weigh(dist.get_rank())

        def name_of(names=("first", "second")):
            names = ["first", "second"]
            try:
                name = names[dist.get_rank()]  # SPG102
            except LookupError:
                return None
            dist.barrier()
            return name

        def with_default(cell):
            try:
                share = SHARES[dist.get_rank()]
            except KeyError:
                share = 1.0
            dist.broadcast(cell, src=0)
            return share

        def without_handler(cell):
            share = SHARES[dist.get_rank()]
            dist.broadcast(cell, src=0)
            return share

        def on_all(cell):
            try:
                half = ("even", "odd")[dist.get_rank() % 2]
            except IndexError:
                return None
            dist.broadcast(cell, src=0)
            return half

        def by_settings(cell, key):
            try:
                share = SHARES[key]
            except KeyError:
                return None
            dist.broadcast(cell, src=0)
            return share
        """,
        "SPG102",
    )


def test_a_world_that_an_assertion_rules_out_says_nothing() -> None:
    """Sizes of model-parallel groups are not the world's, and what no rank can reach is the same for none."""
    assert agree(
        """
        import torch.distributed as dist
        from megatron.core import mpu

        def root_of():
            total = mpu.get_tensor_model_parallel_world_size() * mpu.get_data_parallel_world_size()
            assert total == dist.get_world_size()
            return 0

        def shared(x, group):
            root = root_of()
            if dist.get_rank(group) == 0:
                return  # SPG102
            dist.all_reduce(x, group=group)

        def impossible(x, group):
            size = dist.get_world_size()
            assert size * size == size
            if dist.get_rank(group) == 0:
                return  # SPG102
            dist.all_reduce(x, group=group)

        def both(x):
            if mpu.get_tensor_model_parallel_world_size() > 1:
                dist.barrier()
            dist.all_reduce(x)

        def two_halves(x):
            if dist.get_rank() == 0:
                if mpu.get_tensor_model_parallel_world_size() > 1:
                    dist.barrier()
                return
            if mpu.get_tensor_model_parallel_world_size() > 1:
                dist.barrier()
        """,
        "SPG101",
        "SPG102",
        "SPG103",
        "SPG104",
    )


def test_groups_of_a_mesh_that_is_asked_for_twice() -> None:
    """The mesh of a DTensor is the same each time, and so are its groups: their ranks part among themselves."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.distributed.tensor import DTensor

        def check(weight: DTensor, flags):
            for index, _ in enumerate(weight.placements):
                if dist.get_rank(weight.device_mesh.get_group(index)) == 0:
                    return  # SPG102
                dist.all_reduce(flags, group=weight.device_mesh.get_group(index))

        def by_name(flags, device_mesh):
            if dist.get_rank(device_mesh.get_group("dp")) == 0:
                return  # SPG102
            dist.all_reduce(flags, group=device_mesh.get_group("dp"))

        def by_another_one(flags, device_mesh):
            if dist.get_rank(device_mesh.get_group("tp")) == 0:
                return
            dist.all_reduce(flags, group=device_mesh.get_group("dp"))
        """,
        "SPG102",
    )


def test_packages_that_a_function_does_without() -> None:
    """``except ImportError: Package = None`` inside a function: both are possible, and ranks agree on it."""
    assert agree(
        """
        import torch.distributed as dist

        def with_it(x):
            try:
                from fast import Tensor
            except ImportError:
                Tensor = None
            if Tensor is not None and isinstance(x, Tensor):
                if dist.get_rank() == 0:
                    return  # SPG102
                dist.broadcast(x, src=0)

        def without_it(x):
            try:
                import fast
            except ImportError:
                fast = None
            if fast is None:
                if dist.get_rank() == 0:
                    return  # SPG102
                dist.broadcast(x, src=0)

        def all_alike(x):
            try:
                import fast
            except ImportError:
                fast = None
            if fast is None:
                return
            dist.broadcast(x, src=0)
        """,
        "SPG101",
        "SPG102",
        "SPG202",
    )


def test_what_is_installed_is_the_same_everywhere() -> None:
    """A package that is missing is missing on every rank: not even a possible reason to part."""
    source = """
        import torch.distributed as dist

        def without_it(x):
            try:
                import fast
            except ImportError:
                fast = None
            if fast is None:
                return
            dist.broadcast(x, src=0)
        """
    config = Config(select=("SPG101", "SPG102", "SPG202"), min_certainty="possible")
    content = textwrap.dedent(source).encode()
    assert list(lint([], config, stdin=StandardInput(content, "snippet.py")).findings) == []
