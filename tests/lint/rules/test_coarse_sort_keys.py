"""Sets that are sorted by a key that many items share: those keep the order of the set, another one on each rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_keys_that_many_share() -> None:
    """An answer, a number of letters, a tuple of such, in place; gathered names, tensors, a partial."""
    assert agree(
        """
        import functools

        import torch.distributed as dist

        def by_answer(parts, table):
            names = set()
            for part in parts:
                names.update(part)
            for name in sorted(names, key=lambda n: 0 if n.startswith("norm") else 1):
                dist.all_reduce(table[name])  # SPG403

        def by_length(names, table):
            order = sorted(set(names), key=len, reverse=True)
            for name in order:
                dist.all_reduce(table[name])  # SPG403

        def by_two(names, table):
            for name in sorted({n for n in names}, key=lambda n: (n.count("."), n.endswith("bias"))):
                dist.all_reduce(table[name])  # SPG403

        def in_place(names, table):
            todo = list(set(names))
            todo.sort(key=lambda n: "bias" in n)
            for name in todo:
                dist.all_reduce(table[name])  # SPG403

        def by_size(model, frozen):
            for p in sorted(set(model.parameters()) - frozen, key=lambda p: -p.numel()):
                dist.broadcast(p.data, src=0)  # SPG403

        def kind(first, name):
            return 0 if first in name else 1 if "bias" in name else 2

        def by_partial(names, table):
            for name in sorted(set(names), key=functools.partial(kind, "norm")):
                dist.all_reduce(table[name])  # SPG403
        """,
        "SPG401",
        "SPG403",
    )


def test_keys_that_tell_items_apart() -> None:
    """No key, the item itself in the key or behind an answer, numbers, lists, and one that is looked up."""
    assert agree(
        """
        import torch.distributed as dist

        def whole(names, table, place):
            for name in sorted(set(names)):
                dist.all_reduce(table[name])
            for name in sorted(set(names), key=str):
                dist.all_reduce(table[name])
            for name in sorted(set(names), key=lambda n: (n.startswith("norm"), n)):
                dist.all_reduce(table[name])
            for name in sorted(set(names), key=place.get):
                dist.all_reduce(table[name])
            for name in sorted(set(names), key=lambda n: place[n]):
                dist.all_reduce(table[name])
            for name in sorted(sorted(set(names)), key=len):
                dist.all_reduce(table[name])

        def no_set(names, table):
            for name in sorted(names, key=len):
                dist.all_reduce(table[name])
            for name in sorted(table, key=lambda n: n.endswith("bias")):
                dist.all_reduce(table[name])
            for number in sorted({n % 7 for n in range(20)}, key=lambda n: n % 2 == 0):
                dist.all_reduce(table[number])

        def in_place(names, table):
            todo = list(set(names))
            todo.sort(key=lambda n: (len(n), n))
            for name in todo:
                dist.all_reduce(table[name])
        """,
        "SPG401",
        "SPG403",
    )
