"""SPG202: work that one rank tries again, with a collective in each round."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODE = "SPG202"


def test_a_loop_that_one_rank_goes_round_again() -> None:
    """Left by a return, a break, an else block or what stands behind the statement; ended by a raise at last."""
    assert agree(
        """
        import time

        import torch
        import torch.distributed as dist

        def returns(path, tries):
            for attempt in range(tries):
                dist.barrier()
                try:
                    return open(path).read()
                except OSError:  # SPG202
                    if attempt == tries - 1:
                        raise
                    time.sleep(2**attempt)

        def breaks(path):
            while True:
                dist.barrier()
                try:
                    table = torch.load(path)
                    break
                except Exception as error:  # SPG202
                    print(error)
            return table

        def goes_on(path):
            for _ in range(3):
                dist.barrier()
                try:
                    table = torch.load(path)
                except Exception:  # SPG202
                    continue
                return table

        def by_else(path):
            for _ in range(3):
                dist.barrier()
                try:
                    table = torch.load(path)
                except OSError as error:  # SPG202
                    print(error)
                else:
                    return table
        """,
        CODE,
    )


def test_a_lambda_that_is_tried_again() -> None:
    """What a helper is handed as a lambda has the collective: the report stands there."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def again(action, tries=3):
            for attempt in range(tries):
                try:
                    return action()
                except OSError as error:
                    print(error)

        def save(folder, shard):
            dist.barrier()  # SPG202
            torch.save(shard, f"{folder}/{dist.get_rank()}.pt")
            dist.barrier()

        def train(folder, shard):
            again(lambda: save(folder, shard))

        def write(folder, shard):
            again(lambda: torch.save(shard, f"{folder}/{dist.get_rank()}.pt"))
            dist.barrier()
        """,
        CODE,
    )


def test_rounds_that_all_ranks_share() -> None:
    """The verdict of a round is agreed on, the loop holds no collective, or goes on to the next item on every rank."""
    assert agree(
        """
        import time

        import torch
        import torch.distributed as dist

        def agreed(path):
            for _ in range(3):
                dist.barrier()
                fine = torch.ones(1)
                try:
                    table = torch.load(path)
                except OSError:
                    fine = torch.zeros(1)
                dist.all_reduce(fine, op=dist.ReduceOp.MIN)
                if fine.item():
                    return table

        def before(path):
            dist.barrier()
            for _ in range(3):
                try:
                    return torch.load(path)
                except OSError:
                    time.sleep(1)

        def inside(paths):
            for path in paths:
                dist.barrier()
                for _ in range(3):
                    try:
                        table = torch.load(path)
                        break
                    except OSError:
                        time.sleep(1)

        def items(paths):
            for path in paths:
                dist.barrier()
                try:
                    table = torch.load(path)
                except OSError:
                    continue
                print(table)

        def looks_up(keys, table):
            for key in keys:
                dist.barrier()
                try:
                    return table[key]
                except KeyError:
                    continue
        """,
        CODE,
    )
