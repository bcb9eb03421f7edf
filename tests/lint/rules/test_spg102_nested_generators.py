"""SPG102: a loop over a generator that goes through another one."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_a_way_out_of_the_loop_over_a_generator_that_delegates() -> None:
    """Who leaves the loop leaves all generators behind it, and with them what they would do at their end."""
    assert agree(
        """
        import contextlib

        import torch.distributed as dist

        def numbers(count):
            for number in range(count):
                yield number

        def delegated(count):
            yield from numbers(count)
            dist.barrier()

        def passed_on(count):
            for number in numbers(count):
                yield number
            dist.barrier()

        def two_deep(count):
            yield from (delegated(count))

        @contextlib.contextmanager
        def opened():
            yield

        def in_a_block(count):
            for number in numbers(count):
                with opened():
                    yield number
            dist.barrier()

        def breaks_off():
            for number in delegated(dist.get_world_size()):
                if dist.get_rank() == 0:
                    break  # SPG102

        def returns():
            for number in passed_on(3):
                if dist.get_rank() == 0:
                    return  # SPG102

        def deeper():
            for number in two_deep(3):
                if dist.get_rank() == 0:
                    return  # SPG102

        def out_of_a_block():
            for number in in_a_block(3):
                if dist.get_rank() == 0:
                    break  # SPG102

        def goes_on():
            for number in passed_on(3):
                if dist.get_rank() == 0:
                    continue
                print(number)

        def leaves_the_inner_loop():
            for number in delegated(3):
                for other in numbers(3):
                    if dist.get_rank() == 0:
                        break

        def all_leave(last):
            for number in two_deep(3):
                if number == last:
                    break
        """,
        "SPG102",
    )
