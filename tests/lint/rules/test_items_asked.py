"""Loops over the same items on both ways, each with its own words for which items count."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG401")


def test_as_many_meetings_for_as_many_items_are_no_finding() -> None:
    """One way asks ``if size``, the other leaves out what is None; in a loop, a comprehension and a helper."""
    assert agree(
        """
        import torch.distributed as dist

        class Build:
            def __init__(self, sizes, names):
                self.sizes, self.names = sizes, names

            def run(self):
                if dist.get_rank() % 2:
                    for size in self.sizes:
                        if size is not None:
                            dist.barrier()
                    return []
                return [self.one(name, size) for name, size in zip(self.names, self.sizes)]

            def one(self, name, size):
                if size is None:
                    return None
                if dist.get_rank() == 0:
                    print(name)
                dist.barrier()
                return name

        def in_arms(parts):
            if dist.get_rank() == 0:
                for part in parts:
                    if len(part) > 0:
                        dist.barrier()
            else:
                for position, part in enumerate(parts):
                    if not part:
                        continue
                    dist.barrier()

        def main(names):
            dist.init_process_group("gloo")
            Build([10, None, 3], names).run()
        """,
        *RULES,
    )


def test_other_meetings_for_the_same_items_are_findings() -> None:
    """Another number of meetings for an item, another collective, other items, and no question at all."""
    assert agree(
        """
        import torch.distributed as dist

        def twice(parts):
            if dist.get_rank() == 0:
                for part in parts:
                    if part:
                        dist.barrier()  # SPG103
            else:
                for part in parts:
                    if part is not None:
                        dist.barrier()
                        dist.barrier()

        def another(parts, x):
            if dist.get_rank() == 0:
                for part in parts:
                    if part:
                        dist.barrier()  # SPG103
            else:
                for part in parts:
                    if part is not None:
                        dist.all_reduce(x)

        def of_others(parts, others):
            if dist.get_rank() == 0:
                for part in parts:
                    if part:
                        dist.barrier()  # SPG103
            else:
                for part in others:
                    if part is not None:
                        dist.barrier()

        def always(parts):
            if dist.get_rank() == 0:
                for part in parts:
                    if part:
                        dist.barrier()  # SPG103
            else:
                for part in parts:
                    dist.barrier()
        """,
        *RULES,
    )
