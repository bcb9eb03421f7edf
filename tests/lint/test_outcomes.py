"""What a function gives: each of its returns is told from those that come after it."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_a_return_in_a_block_behind_an_early_one() -> None:
    """What is returned in a clause, a loop or a nested test is not all that a function gives behind an early return."""
    assert agree(
        """
        import torch.distributed as dist

        def in_a_clause(flag, path):
            if not flag:
                return 1
            try:
                open(path)
            except OSError:
                return 1
            return 2

        def in_a_nested_test(flag, items):
            if not flag:
                return 1
            if items:
                if items[0]:
                    return 1
            return 2

        def in_a_loop(flag, items):
            if not flag:
                return 1
            for item in items:
                if item:
                    return 1
            return 2

        def in_its_else(flag, items):
            if not flag:
                return 1
            for item in items:
                if item:
                    break
            else:
                return 1
            return 2

        def raised_below(flag, items):
            if not flag:
                return 1
            try:
                if not items:
                    raise ValueError
            except ValueError:
                return 1
            return 2

        def main(items):
            main = dist.get_rank() == 0
            if in_a_clause(main, "x") == 1:
                dist.barrier()  # SPG101
            if in_a_nested_test(main, items) == 1:
                dist.barrier()  # SPG101
            if in_a_loop(main, items) == 1:
                dist.barrier()  # SPG101
            if in_its_else(main, items) == 1:
                dist.barrier()  # SPG101
            if raised_below(main, items) == 1:
                dist.barrier()  # SPG101
            if in_a_nested_test(True, items) == 1:
                dist.barrier()
            if in_a_loop(True, items) == 1:
                dist.barrier()
            if in_its_else(True, items) == 1:
                dist.barrier()
            if raised_below(True, items) == 1:
                dist.barrier()
        """,
        "SPG101",
    )


def test_a_return_in_the_first_round_of_a_loop() -> None:
    """Where a loop may have no round, what it returns in its first one is not all that the function gives."""
    assert agree(
        """
        import torch.distributed as dist

        def numbers(n):
            for i in range(n):
                yield i

        def counted(n):
            for _ in range(n):
                return 1
            return 2

        def tested(n):
            while n > 0:
                return 1
            return 2

        def produced(flag, n):
            if not flag:
                return 1
            for _ in numbers(n):
                return 1
            return 2

        def surely(flag):
            for _ in range(3):
                return 1 if flag is None else 2
            return flag

        def main(n):
            rank = dist.get_rank()
            if counted(rank * 2) == 1:
                dist.barrier()  # SPG101
            if tested(rank) == 1:
                dist.barrier()  # SPG101
            if produced(rank == 0, n) == 1:
                dist.barrier()  # SPG101
            if counted(n) == 1:
                dist.barrier()
            if tested(n) == 1:
                dist.barrier()
            if produced(True, n) == 1:
                dist.barrier()
            if surely(rank) == 2:
                dist.barrier()
        """,
        "SPG101",
    )


def test_a_precondition_of_the_rank_tells_nothing() -> None:
    """A rank that ends with an error gives nothing, in a loop neither: what the others give does not vary."""
    assert agree(
        """
        import torch.distributed as dist

        def chosen(rank, names):
            if rank > 64:
                raise ValueError(rank)
            for name in names:
                if name:
                    return 1
            return 2

        def main(names):
            if chosen(dist.get_rank(), names) == 1:
                dist.barrier()
        """,
        "SPG101",
    )
