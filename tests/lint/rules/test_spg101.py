"""SPG101: collectives in a branch on the rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ONE_BRANCH = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105")


def test_ways_to_ask_for_the_rank() -> None:
    """However the rank is asked for, a collective under the answer is reported."""
    assert agree(
        """
        import os
        import torch.distributed as dist
        from torch.distributed import get_rank as me
        from accelerate import Accelerator

        def by_call(x):
            if dist.get_rank() == 0:
                dist.all_reduce(x)  # SPG101

        def by_alias(x):
            rank = me()
            if not rank:
                dist.all_reduce(x)  # SPG101

        def by_environment(x):
            if int(os.environ["RANK"]) == 0:
                dist.all_reduce(x)  # SPG101

        def by_local_rank(x):
            local_rank = int(os.environ.get("LOCAL_RANK", 0))
            if local_rank in (0,):
                dist.barrier()  # SPG101

        def by_attribute(accelerator: Accelerator):
            if accelerator.is_main_process:
                accelerator.wait_for_everyone()  # SPG101

        class Worker:
            def __init__(self):
                self.rank = dist.get_rank()
                self.is_first = self.rank == 0

            def share(self, x):
                if self.is_first:
                    dist.broadcast(x, src=0)  # SPG101
        """,
        *ONE_BRANCH,
    )


def test_other_arm_and_other_statements() -> None:
    """The collective may stand in the else arm, in a match, in a loop or in a handler's try."""
    assert agree(
        """
        import torch.distributed as dist

        def orelse(x):
            if dist.get_rank() == 0:
                print("first")
            else:
                dist.barrier()  # SPG101

        def matched(x):
            match dist.get_rank():
                case 0:
                    dist.barrier()  # SPG101
                case _:
                    print("other")

        def in_loop(xs):
            for x in xs:
                if dist.get_rank() < 2:
                    dist.all_reduce(x)  # SPG101

        def compound(x, verbose):
            if verbose and dist.get_rank() == 0:
                dist.barrier()  # SPG101

        def walrus(x):
            if (rank := dist.get_rank()) == 0:
                dist.all_reduce(x)  # SPG101
        """,
        *ONE_BRANCH,
    )


def test_forward_and_backward_are_collectives() -> None:
    """A wrapped model's forward and its backward hide collectives."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def train(net, batch):
            model = DDP(net)
            if dist.get_rank() == 0:
                loss = model(batch).sum()  # SPG101
        """,
        *ONE_BRANCH,
    )


def test_correct_idioms_are_silent() -> None:
    """Split barriers, equal arms, always-true tests, sentinels and group membership are no findings."""
    assert agree(
        """
        import torch.distributed as dist

        def split_barrier(fetch):
            if dist.get_rank() == 0:
                print("x")
                dist.barrier()
            else:
                dist.barrier()
                print("y")

        def complementary(x):
            if dist.get_rank() == 0:
                dist.all_reduce(x)
            if dist.get_rank() != 0:
                dist.all_reduce(x)

        def always_true(x):
            if dist.get_rank() < dist.get_world_size():
                dist.barrier()

        def distributed_or_not(x, rank=-1):
            if dist.is_initialized():
                dist.all_reduce(x)

        def shared_decision(x, flag):
            if dist.get_rank() == 0:
                flag.fill_(1)
            dist.broadcast(flag, src=0)
            if flag.item():
                dist.all_reduce(x)

        def members_only(x, members):
            group = dist.new_group(members)
            if dist.get_rank() in members:
                dist.all_reduce(x, group=group)

        def point_to_point(x):
            if dist.get_rank() == 0:
                dist.send(x, dst=1)
            elif dist.get_rank() == 1:
                dist.recv(x, src=0)
        """,
        *ONE_BRANCH,
    )


def test_known_miss_calls_that_are_not_resolved() -> None:
    """A collective behind a function found by its name as text is not seen."""
    assert agree(
        """
        import torch.distributed as dist

        def sync(x):
            dist.all_reduce(x)

        def dispatch(name, x):
            if dist.get_rank() == 0:
                globals()[name](x)
        """,
        *ONE_BRANCH,
    )


def test_a_pair_of_rank_and_world_size() -> None:
    """``rank, world_size = get_dist_info()``: one differs between ranks, the other does not."""
    assert agree(
        """
        import torch.distributed as dist
        import torchtune.training
        from mmengine.dist import get_dist_info

        def by_size():
            rank, world_size = get_dist_info()
            if world_size > 1:
                dist.barrier()

        def by_rank():
            rank, world_size = get_dist_info()
            if rank == 0:
                dist.barrier()  # SPG101

        def the_other_way():
            world_size, rank = torchtune.training.get_world_size_and_rank()
            if world_size > 1:
                dist.barrier()
            if rank == 0:
                dist.barrier()  # SPG101

        def by_position(x):
            if get_dist_info()[1] > 1:
                dist.all_reduce(x)
            if get_dist_info()[0] == 0:
                dist.all_reduce(x)  # SPG101

        def of_a_group(x, group):
            rank, world_size = get_dist_info(group)
            if world_size > 1:
                dist.all_reduce(x, group=group)
            if rank == 0:
                dist.all_reduce(x, group=group)  # SPG101
        """,
        *ONE_BRANCH,
    )
