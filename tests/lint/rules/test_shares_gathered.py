"""SPG107: tensors with an entry for each item of a rank's share, of which one rank has more than another."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_a_result_for_each_item_of_a_share() -> None:
    """By stacking, joining, out of numbers, through numpy, over a library's call; `all_gather` wants equal sizes."""
    assert agree(
        """
        import numpy as np
        import torch
        import torch.distributed as dist
        from accelerate import Accelerator

        def together(mine):
            parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, mine)  # SPG107
            return torch.cat(parts)

        def by_range(model, count):
            mine = range(dist.get_rank(), count, dist.get_world_size())
            together(torch.stack([model(number) for number in mine]))

        def by_slice(model, items):
            found = []
            for item in items[dist.get_rank() :: dist.get_world_size()]:
                found.append(model(item))
            dist.all_reduce(torch.cat(found, dim=0))  # SPG107

        def by_remainder(model, items):
            rank, world = dist.get_rank(), dist.get_world_size()
            found = [float(model(item)) for n, item in enumerate(items) if n % world == rank]
            everything = torch.empty(len(found) * world, device="cuda")
            dist.all_gather_into_tensor(everything, torch.tensor(found, device="cuda"))  # SPG107

        def through_numpy(model, items):
            found = [float(model(item)) for item in items[dist.get_rank() :: dist.get_world_size()]]
            mine = torch.from_numpy(np.array(found))
            dist.all_reduce(mine)  # SPG107

        def by_a_library(model, items):
            accelerator = Accelerator()
            mine = items[accelerator.process_index :: accelerator.num_processes]
            return accelerator.gather(torch.cat([model(item) for item in mine]))  # SPG107
        """,
        "SPG107",
    )


def test_equal_shares_and_sizes_that_are_told() -> None:
    """Shares that come out even or are made so, padded tensors, buffers sized one by one, sums, objects, one sender."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from accelerate import Accelerator

        def even(model, count):
            rank, per = dist.get_rank(), count // dist.get_world_size()
            dist.all_reduce(torch.stack([model(i) for i in range(rank * 4, rank * 4 + 4)]))
            dist.all_reduce(torch.stack([model(i) for i in range(rank * per, (rank + 1) * per)]))

        def checked(model, items):
            assert len(items) % dist.get_world_size() == 0
            mine = items[dist.get_rank() :: dist.get_world_size()]
            dist.all_reduce(torch.stack([model(item) for item in mine]))

        def filled_up(model, items):
            while len(items) % dist.get_world_size():
                items.append(items[-1])
            mine = items[dist.get_rank() :: dist.get_world_size()]
            dist.all_reduce(torch.stack([model(item) for item in mine]))

        def padded(model, items):
            accelerator = Accelerator()
            mine = items[accelerator.process_index :: accelerator.num_processes]
            found = torch.cat([model(item) for item in mine])
            return accelerator.gather(accelerator.pad_across_processes(found, dim=0))

        def sized_apart(model, items):
            rank, world = dist.get_rank(), dist.get_world_size()
            mine = torch.stack([model(item) for item in items[rank::world]])
            parts = [mine.new_empty(len(items[other::world]), 4) for other in range(world)]
            dist.all_gather(parts, mine)

        def summed(model, items):
            mine = torch.stack([model(item) for item in items[dist.get_rank() :: dist.get_world_size()]])
            dist.all_reduce(mine.sum(0))

        def one_of_two_lists(model, first, second):
            mine = first if dist.get_rank() == 0 else second
            dist.all_reduce(torch.tensor([1, 2] if dist.get_rank() == 0 else [0, 0]))
            dist.all_reduce(torch.tensor([model, 2] if dist.get_rank() == 0 else [0, 0]))
            dist.all_reduce(torch.stack(mine))

        def objects(model, items):
            mine = [model(item) for item in items[dist.get_rank() :: dist.get_world_size()]]
            dist.all_gather_object([None] * dist.get_world_size(), mine)

        def one_sender(model, items):
            rank, world = dist.get_rank(), dist.get_world_size()
            for other in range(world):
                if rank == other:
                    mine = torch.stack([model(item) for item in items[rank::world]])
                    dist.broadcast(mine, src=other)
                else:
                    dist.broadcast(torch.empty(len(items[other::world]), 4), src=other)
        """,
        "SPG107",
    )


def test_known_limit_of_shares_of_tensors() -> None:
    """Rows of a tensor are mostly as many as divide evenly (shards of weights): nothing is said of them."""
    assert agree(
        """
        import torch.distributed as dist

        def rows(data):
            dist.all_reduce(data[dist.get_rank() :: dist.get_world_size()])
        """,
        "SPG107",
    )
