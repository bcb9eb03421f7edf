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


def test_groups_of_their_own() -> None:
    """A group that is used after its own destruction; one that is made anew, or another one, is not."""
    assert agree(
        """
        import torch.distributed as dist

        def close(group, value):
            dist.destroy_process_group(group)
            dist.all_reduce(value, group=group)  # SPG602
            dist.all_reduce(value)

        class Round:
            def __init__(self, group):
                self.group = group

            def __enter__(self):
                return self.group

            def __exit__(self, *_):
                dist.destroy_process_group(self.group)
                return False

        def twice(value):
            everyone = dist.new_group(list(range(dist.get_world_size())))
            for _ in range(2):
                with Round(everyone) as group:
                    dist.all_reduce(value, group=group)  # SPG602

        def anew(value):
            for _ in range(2):
                group = dist.new_group(list(range(dist.get_world_size())))
                dist.all_reduce(value, group=group)
                dist.destroy_process_group(group)

        def each(groups, value):
            for group in groups:
                dist.all_reduce(value, group=group)
                dist.destroy_process_group(group)

        def others(value):
            first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
            dist.destroy_process_group(first)
            dist.all_reduce(value, group=second)

        def ended(value, again):
            group = dist.new_group([0, 1])
            dist.all_reduce(value, group=group)
            dist.destroy_process_group(group)
            if again:
                group = dist.new_group([0, 1])
                dist.all_reduce(value, group=group)
        """,
        "SPG602",
    )


def test_miss_item_of_a_list_of_groups() -> None:
    """Known miss: groups in a list are not told apart."""
    assert agree(
        """
        import torch.distributed as dist

        def close(groups, value):
            for group in groups:
                dist.destroy_process_group(group)
                dist.all_reduce(value, group=group)
        """,
        "SPG602",
    )


def test_functions_that_no_whole_run_comes_through() -> None:
    """Callers whose arguments lead past it, and unknown code that is handed it: the function is read on its own."""
    assert agree(
        """
        import torch.distributed as dist
        from elsewhere import apply

        def compare(states):
            dist.destroy_process_group()
            dist.broadcast_object_list(states, src=0)  # SPG602

        def validate(metadata, states=None):
            if states is not None:
                compare(states)

        def load(metadata):
            validate(metadata)

        def collect(values, several):
            if several:
                dist.destroy_process_group()
                dist.all_gather_object([None], values)  # SPG602
            return values

        def save(values):
            return collect(values, False)

        def last(value):
            dist.all_reduce(value)
            dist.destroy_process_group()

        def close(value=None):
            if value is not None:
                last(value)

        def end():
            close()
        """,
        "SPG602",
    )


def test_destruction_inside_a_guarded_run() -> None:
    """`run` lets the ranks agree when its function has ended, and destroys the group itself."""
    assert agree(
        """
        import torch.distributed as dist
        import spmdguard

        class Job:
            def train(self):
                dist.init_process_group("gloo")
                dist.barrier()
                dist.destroy_process_group()  # SPG602

        def fit():
            dist.init_process_group("gloo")
            dist.barrier()

        def on_own_groups():
            dist.init_process_group("gloo")
            group = dist.new_group([0, 1])
            dist.destroy_process_group(group)
            dist.barrier()

        def main(kind):
            if kind == "job":
                job = Job()
                spmdguard.run(job.train, post_train=print)
            elif kind == "fit":
                spmdguard.run(fit)
            else:
                spmdguard.run(on_own_groups)

        if __name__ == "__main__":
            main("job")
            main("fit")
            main("groups")
        """,
        "SPG602",
    )
