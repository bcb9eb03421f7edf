"""Generators that communicate, behind ``enumerate``, ``zip`` and ``iter``: run where the loop runs."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105", "SPG401")


def test_generators_consumed_by_one_rank() -> None:
    """Each step reduces; only one rank takes the steps."""
    assert agree(
        """
        import torch.distributed as dist

        def means(chunks):
            for chunk in chunks:
                dist.all_reduce(chunk)
                yield chunk

        class Stream:
            def __init__(self, chunks):
                self.chunks = chunks

            def __iter__(self):
                for chunk in self.chunks:
                    dist.all_reduce(chunk)
                    yield chunk

        def numbered(chunks):
            stream = means(chunks)
            if dist.get_rank() == 0:
                for i, mean in enumerate(stream, 1):  # SPG104
                    print(i, mean)

        def zipped(chunks, names):
            if dist.get_rank() == 0:
                for name, mean in zip(names, means(chunks)):  # SPG104
                    print(name, mean)

        def in_a_list(chunks):
            if dist.get_rank() == 0:
                print([(i, mean) for i, mean in enumerate(means(chunks))])  # SPG104

        def of_an_object(chunks):
            if dist.get_rank() == 0:
                for i, mean in enumerate(Stream(chunks)):  # SPG104
                    print(i, mean)
        """,
        *ARMS,
    )


def test_generators_consumed_by_all() -> None:
    """One rank prints what all have reduced; the number of a step and what it is zipped with are no rank's own."""
    assert agree(
        """
        import torch.distributed as dist

        def means(chunks):
            for chunk in chunks:
                dist.all_reduce(chunk)
                yield chunk

        def numbered(chunks):
            for i, mean in enumerate(means(chunks)):
                if dist.get_rank() == 0:
                    print(i, mean)
                if i == 3:
                    break

        def zipped(chunks, names):
            for (i, name), mean in zip(enumerate(names), means(chunks)):
                if name == "last":
                    dist.barrier()

        def apart(chunks):
            for i, mean in enumerate(means(chunks)):
                if dist.get_rank() == i:
                    dist.barrier()  # SPG101

        def in_a_list(chunks):
            found = [mean for i, mean in enumerate(means(chunks)) if i]
            if dist.get_rank() == 0:
                print(found)
        """,
        *ARMS,
    )
