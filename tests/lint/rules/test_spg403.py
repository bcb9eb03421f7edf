"""SPG403: collectives in the order of a set."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ORDER = ("SPG101", "SPG401", "SPG403")


def test_unordered_items() -> None:
    """Sets made in every way, views of dicts, lists and dicts made from them, enumerations."""
    assert agree(
        """
        import torch.distributed as dist

        def called(names, table):
            for name in set(names):
                dist.broadcast(table[name], src=0)  # SPG403

        def enumerated(names, table):
            for index, name in enumerate({n for n in names}):
                dist.broadcast(table[name], src=0)  # SPG403

        def difference(names, done, table):
            for name in set(names) - set(done):
                dist.broadcast(table[name], src=0)  # SPG403

        def keys(one, two, table):
            for name in one.keys() & two.keys():
                dist.broadcast(table[name], src=0)  # SPG403

        def collected(modules, table):
            seen = set()
            for module in modules:
                seen.add(module.name)
            for name in seen:
                dist.broadcast(table[name], src=0)  # SPG403

        def listed(names, table):
            todo = list(set(names))
            for name in todo:
                dist.broadcast(table[name], src=0)  # SPG403

        def filled(names, table):
            chosen = {name: table[name] for name in set(names)}
            for name, tensor in chosen.items():
                dist.broadcast(tensor, src=0)  # SPG403

        class Buckets:
            def __init__(self, names):
                self.names = frozenset(names)

            def share(self, table):
                for name in self.names:
                    self.send(table[name])

            def send(self, tensor):
                dist.broadcast(tensor, src=0)  # SPG403
        """,
        *ORDER,
    )


def test_ordered_items_are_silent() -> None:
    """Sorted sets, whole numbers, dicts and lists, and loops without a collective."""
    assert agree(
        """
        import torch.distributed as dist

        def ordered(names, table):
            for name in sorted(set(names)):
                dist.broadcast(table[name], src=0)

        def in_place(names, table):
            todo = list(set(names))
            todo.sort()
            for name in todo:
                dist.broadcast(table[name], src=0)

        def numbers(table):
            for index in {0, 1, 2}:
                dist.broadcast(table[index], src=0)

        def mapping(table):
            for name, tensor in table.items():
                dist.broadcast(tensor, src=0)

        def local(names, x):
            for name in set(names):
                print(name)
            dist.all_reduce(x)

        def barriers(names):
            for name in set(names):
                print(name)
                dist.barrier()

        def unique(names, table):
            for name in dict.fromkeys(names):
                dist.broadcast(table[name], src=0)
        """,
        *ORDER,
    )


def test_known_miss_pop() -> None:
    """Taking items out of a set one by one is not seen."""
    assert agree(
        """
        import torch.distributed as dist

        def popped(names, table):
            todo = set(names)
            while todo:
                dist.broadcast(table[todo.pop()], src=0)
        """,
        *ORDER,
    )
