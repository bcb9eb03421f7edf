"""Loops over a rank's own items that communicate in their first rounds alone, an agreed number of them."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_collectives_in_agreed_rounds_alone() -> None:
    """What lies behind the least length of all ranks is a rank's own matter; any other limit is none."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def least_of_all(number):
            everyone = [None] * dist.get_world_size()
            dist.all_gather_object(everyone, number)
            return min(everyone)

        def agreed(total):
            mine = range(dist.get_rank(), total, dist.get_world_size())
            least = least_of_all(len(mine))
            for i, x in enumerate(mine):
                if i % 10 == 0 and i < least:
                    dist.barrier()
            for i, x in enumerate(mine):
                x.work()
                if not i < least:
                    continue
                dist.barrier()
            for i, x in enumerate(mine):
                if i >= least or i % 10:
                    x.work()
                else:
                    dist.barrier()

        def reduced(total):
            mine = list(range(dist.get_rank(), total, dist.get_world_size()))
            least = torch.tensor(len(mine))
            dist.all_reduce(least, op=dist.ReduceOp.MIN)
            for i, x in enumerate(mine):
                if least > i:
                    dist.barrier()

        def not_agreed(total):
            mine = range(dist.get_rank(), total, dist.get_world_size())
            for i, x in enumerate(mine):
                if i < 100:
                    dist.barrier()  # SPG401

        def behind(total):
            mine = range(dist.get_rank(), total, dist.get_world_size())
            least = least_of_all(len(mine))
            for i, x in enumerate(mine):
                if i >= least:
                    dist.barrier()  # SPG401
            for i, x in enumerate(mine):
                if i < least or i % 10 == 0:
                    dist.barrier()  # SPG401

        def also_elsewhere(total):
            mine = range(dist.get_rank(), total, dist.get_world_size())
            least = least_of_all(len(mine))
            for i, x in enumerate(mine):
                if i < least:
                    dist.barrier()  # SPG401
                x.work()
                dist.all_reduce(x)

        def position_of_another_loop(total):
            mine = range(dist.get_rank(), total, dist.get_world_size())
            least = least_of_all(len(mine))
            for x in mine:
                for i, y in enumerate(range(10)):
                    if i < least:
                        dist.barrier()  # SPG401

        def most(total):
            mine = range(dist.get_rank(), total, dist.get_world_size())
            greatest = torch.tensor(len(mine))
            dist.all_reduce(greatest, op=dist.ReduceOp.MAX)
            for i, x in enumerate(mine):
                if i < greatest:
                    dist.barrier()  # SPG401

        def own_steps(total):
            mine = range(dist.get_rank(), total, dist.get_world_size())
            least = least_of_all(len(mine))
            every = max(len(mine) // 100, 1)
            for i, x in enumerate(mine):
                if i % every == 0 and i < least:
                    dist.barrier()  # SPG101
        """,
        "SPG101",
        "SPG401",
    )
