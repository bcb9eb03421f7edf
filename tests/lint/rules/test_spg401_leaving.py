"""SPG401: loops whose rounds leave further in."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_a_way_out_in_a_loop_of_the_round() -> None:
    """A return or a raise in an inner loop leaves the outer one, which not every rank goes into."""
    assert agree(
        """
        import torch.distributed as dist

        def returns(world):
            rank = dist.get_rank()
            for place in range(rank * 2):  # SPG401
                for epoch in range(world):
                    return
            dist.barrier()

        def in_step(world):
            rank = dist.get_rank()
            for place, part in zip(range(rank * 2), range(2)):  # SPG401
                for epoch in range(world):
                    return
            dist.barrier()

        def turns():
            turn = 0
            while turn < dist.get_rank() % 2:  # SPG402
                for epoch in range(2):
                    return
            dist.barrier()

        def behind_it(names):
            for place in range(dist.get_rank()):  # SPG401
                for name in names:
                    if name:
                        break
                else:
                    break
            else:
                dist.barrier()

        def only_the_inner_loop(names):
            for place in range(dist.get_rank()):
                for name in names:
                    if name:
                        break
            dist.barrier()

        def each_alike(names):
            for place in range(3):
                for name in names:
                    if name:
                        return
            dist.barrier()

        def only_inside(shares):
            for name in ("a", "b"):
                for share in shares[dist.get_rank()]:  # SPG401
                    return
            dist.barrier()
        """,
        "SPG401",
        "SPG402",
    )


def test_what_an_inner_loop_raises_for_what_should_not_be() -> None:
    """A setting that the program does not know is no way out of the loop."""
    assert agree(
        """
        import torch.distributed as dist

        def evaluates(batches, name):
            rows = []
            for batch in batches[dist.get_rank() :: dist.get_world_size()]:
                for row in ("a", "b"):
                    if name == "one":
                        rows.append(row)
                    else:
                        raise NotImplementedError(name)
            dist.barrier()

        def caught(batches, name):
            try:
                for batch in batches[dist.get_rank() :: dist.get_world_size()]:  # SPG401
                    for row in ("a", "b"):
                        if name != "one":
                            raise NotImplementedError(name)
                dist.barrier()
            except NotImplementedError:
                pass
        """,
        "SPG401",
    )
