"""SPG602: collectives after the destruction of the group."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_barrier_after_destroy() -> None:
    """A barrier or collective behind the destruction is reported there."""
    assert agree(
        """
        import torch.distributed as dist

        def close(value):
            dist.destroy_process_group()
            dist.barrier()  # SPG602
        """,
        "SPG602",
    )


def test_sub_groups_end_with_the_default_group() -> None:
    """The default destruction ends every group; that of one group ends no other."""
    assert agree(
        """
        import torch.distributed as dist

        def close(value, group):
            dist.destroy_process_group()
            dist.all_reduce(value, group=group)  # SPG602

        def close_one(value, group, other):
            dist.destroy_process_group(other)
            dist.all_reduce(value, group=group)
            dist.barrier()
        """,
        "SPG602",
    )


def test_through_calls() -> None:
    """Destruction and use may each stand in a function of their own."""
    assert agree(
        """
        import torch.distributed as dist

        def shutdown():
            dist.barrier()
            dist.destroy_process_group()

        def mean(value):
            dist.all_reduce(value)  # SPG602
            return value / 2

        def main(value):
            dist.init_process_group("gloo")
            shutdown()
            print(mean(value))
        """,
        "SPG602",
    )


def test_implicit_collective() -> None:
    """A wrapped model's forward after the destruction counts."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def main(net, batch):
            model = DDP(net)
            dist.destroy_process_group()
            model(batch)  # SPG602
        """,
        "SPG602",
    )


def test_after_try() -> None:
    """A destruction in the body of a try reaches what follows."""
    assert agree(
        """
        import torch.distributed as dist

        def main(train):
            try:
                train()
                dist.destroy_process_group()
            finally:
                print("over")
            dist.barrier()  # SPG602
        """,
        "SPG602",
    )


def test_right_order() -> None:
    """Collectives first, or a new group in between, are silent."""
    assert agree(
        """
        import torch.distributed as dist

        def close(value):
            dist.all_reduce(value)
            dist.barrier()
            dist.destroy_process_group()

        def again(value):
            dist.destroy_process_group()
            dist.init_process_group("gloo")
            dist.all_reduce(value)
        """,
        "SPG602",
    )


def test_asks_whether_initialised() -> None:
    """A collective that only runs in a living group is silent."""
    assert agree(
        """
        import torch.distributed as dist

        def close():
            if dist.is_initialized():
                dist.destroy_process_group()
            if dist.is_initialized():
                dist.barrier()
        """,
        "SPG602",
    )


def test_own_group() -> None:
    """Destroying a group of its own leaves the default group alive."""
    assert agree(
        """
        import torch.distributed as dist

        def close(group):
            dist.destroy_process_group(group)
            dist.barrier()
        """,
        "SPG602",
    )


def test_on_other_arms() -> None:
    """Where the destruction returns, what follows belongs to other runs."""
    assert agree(
        """
        import torch.distributed as dist

        def close(alone, value):
            if alone:
                dist.destroy_process_group()
                return
            dist.all_reduce(value)
            dist.destroy_process_group()
        """,
        "SPG602",
    )


def test_miss_flag_of_another_process() -> None:
    """Known miss: a use of a group that was given by name after its own destruction."""
    assert agree(
        """
        import torch.distributed as dist

        def close(group, value):
            dist.destroy_process_group(group)
            dist.all_reduce(value, group=group)
        """,
        "SPG602",
    )
