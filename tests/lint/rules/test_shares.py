"""Even and uneven shares, orders that dicts take from sets, metrics that keep to themselves."""

from __future__ import annotations

from spmdguard_lint.values.shares import is_even_share
from spmdguard_lint.values.value import NONE, Place, Taint, Value, constant, expression, symbol

from tests.lint.rules.marked import agree

DATA = Taint("data", Place("a.py", 1, 0, 1, 1), "len(mine)")
RULES = ("SPG101", "SPG104", "SPG401", "SPG402", "SPG403")


def test_a_share_is_even_where_every_rank_gets_as_much() -> None:
    """Blocks of a floored size and evenly cut strides are even; rounding up, strides and the rest are not."""
    assert agree(
        """
        import math
        import torch.distributed as dist

        def even(files, per, bs):
            rank, world = dist.get_rank(), dist.get_world_size()
            floor = len(files) // world
            usable = len(files) - len(files) % world
            for x in files[rank * floor : (rank + 1) * floor]:
                dist.barrier()
            for x in files[rank * per : rank * per + per]:
                dist.barrier()
            for x in files[rank:usable:world]:
                dist.barrier()
            for x in files[: len(files) // world * world][rank::world]:
                dist.barrier()
            for step in range(len(files[rank:usable:world]) // bs):
                dist.barrier()

        def rounded_up(files):
            rank, world = dist.get_rank(), dist.get_world_size()
            ceil = math.ceil(len(files) / world)
            for x in files[rank * ceil : (rank + 1) * ceil]:
                dist.barrier()  # SPG401

        def stride(files):
            rank, world = dist.get_rank(), dist.get_world_size()
            for x in range(rank, len(files), world):
                dist.barrier()  # SPG401

        def length_of_a_stride(files, bs):
            rank, world = dist.get_rank(), dist.get_world_size()
            for step in range(len(files[rank::world]) // bs):
                dist.barrier()  # SPG401

        def computed_from_the_rank(bs):
            for step in range(dist.get_rank() // bs):
                dist.barrier()  # SPG401

        def the_last_rank_takes_the_rest(files):
            rank, world = dist.get_rank(), dist.get_world_size()
            per = len(files) // world
            end = len(files) if rank == world - 1 else (rank + 1) * per
            for x in files[rank * per : end]:
                dist.barrier()  # SPG401
        """,
        *RULES,
    )


def test_unknown_code_that_is_given_rank_and_world_size_makes_equal_shares() -> None:
    """A loader made elsewhere from rank and world size is as long everywhere; one made from the rank alone is not."""
    assert agree(
        """
        import torch.distributed as dist
        from elsewhere import loader_for

        def train(x):
            for batch in loader_for(dist.get_rank(), dist.get_world_size()):
                dist.all_reduce(x)

        def alone(x):
            for batch in loader_for(dist.get_rank()):
                dist.all_reduce(x)  # SPG401
        """,
        *RULES,
    )


def test_a_dict_takes_its_order_from_the_set_that_it_was_made_of() -> None:
    """Iterating it is unordered, also by items; its length and truth are the same everywhere, and sorting mends it."""
    assert agree(
        """
        import torch.distributed as dist

        def totals(names, values):
            kept = {name: values[name] for name in set(names)}
            for name in kept:
                dist.all_reduce(kept[name])  # SPG403

        def items(names, values):
            kept = {name: values[name] for name in set(names)}
            for name, value in kept.items():
                dist.all_reduce(value)  # SPG403

        def not_its_order(names, values):
            kept = {name: values[name] for name in set(names)}
            for name in sorted(kept):
                dist.all_reduce(kept[name])
            if kept:
                dist.barrier()
            for turn in range(len(kept)):
                dist.barrier()

        def ordered(names, values):
            kept = {name: values[name] for name in sorted(set(names))}
            for name in kept:
                dist.all_reduce(kept[name])
        """,
        *RULES,
    )


def test_a_metric_told_not_to_synchronise_computes_alone() -> None:
    """``sync_on_compute=False``, also of all members of a collection."""
    assert agree(
        """
        import torch.distributed as dist
        from torchmetrics import MetricCollection
        from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

        def alone():
            one = MulticlassAccuracy(3, sync_on_compute=False)
            many = MetricCollection({"a": MulticlassAccuracy(3, sync_on_compute=False)})
            if dist.get_rank() == 0:
                print(one.compute(), many.compute())

        def together():
            many = MetricCollection({"a": MulticlassAccuracy(3, sync_on_compute=False), "f": MulticlassF1Score(3)})
            if dist.get_rank() == 0:
                print(many.compute())  # SPG101
        """,
        *RULES,
    )


def test_state_and_parameters_of_sharded_models_are_gathered_whatever_their_type() -> None:
    """``full_tensor`` of an unknown parameter; ``state_dict`` under ``FSDP.state_dict_type``."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

        def norms(model):
            if dist.get_rank() == 0:
                for name, parameter in model.named_parameters():
                    print(name, parameter.full_tensor().norm())  # SPG101

        def save(model, kind):
            if dist.get_rank() == 0:
                with FSDP.state_dict_type(model, kind):
                    print(model.state_dict())  # SPG101
        """,
        *RULES,
    )


def test_a_share_is_compared_by_numbers() -> None:
    """The unit beside the rules: opaque bounds count, what differs between ranks in unknown ways never does."""
    rank, world, n = Value("rank"), Value("world"), symbol("n")
    cut = expression("-", (n, expression("%", (n, world))))
    assert is_even_share(rank, cut, world)
    assert not is_even_share(rank, n, world)
    assert not is_even_share(constant(0), symbol("mine", frozenset({DATA})), NONE)
    assert is_even_share(constant(0), n, NONE)


def test_a_flag_that_says_distributed_is_read_as_true() -> None:
    """With one rank nothing can part: what happens where the flag is false does not count."""
    assert agree(
        """
        import torch.distributed as dist

        class Trainer:
            def __init__(self, distributed):
                self.distributed = distributed

            def step(self, loss):
                bad = loss.isnan()
                if self.distributed:
                    dist.all_reduce(bad)
                if bad.item():
                    return
                if self.distributed:
                    dist.barrier()

            def unguarded(self, args):
                if args.distributed and dist.get_rank() == 0:
                    dist.barrier()  # SPG101
        """,
        *RULES,
        "SPG102",
        "SPG305",
    )


def test_a_random_tensor_has_the_length_that_was_asked_for() -> None:
    """Its numbers are each process's own, the number of its rows is not."""
    assert agree(
        """
        import random
        import torch
        import torch.distributed as dist

        def rows():
            table = torch.randn(512, 39)
            for row in range(len(table)):
                dist.barrier()

        def drawn():
            for turn in range(random.randint(1, 9)):
                dist.barrier()  # SPG401
        """,
        *RULES,
        "SPG303",
    )


def test_a_share_is_even_however_long_the_number_of_items_is() -> None:
    """A count whose source is a long expression is the same number in each of its places; a stride is uneven yet."""
    assert agree(
        """
        import numpy as np
        import torch.distributed as dist

        class Order:
            def __init__(self, folder, seed, name):
                self.folder, self.seed, self.name = folder, seed, name
                self.epoch = None
                self.kept = None

            @property
            def path(self):
                return f"{self.folder}/{self.name}-{self.seed}-{self.epoch}-{self.name.upper()}.npy"

            def shuffle(self, epoch, here):
                self.epoch = epoch
                self.kept = np.arange(epoch + self.seed) if here else None

        class Loader(Order):
            def __iter__(self):
                rows = self.kept if self.kept is not None else np.load(self.path, mmap_mode="r")
                rank, world = dist.get_rank(), dist.get_world_size()
                usable = len(rows) - len(rows) % (world * 32)
                for start in range(rank * 32, usable, world * 32):
                    yield rows[start]

        class Uneven(Order):
            def __iter__(self):
                rows = self.kept if self.kept is not None else np.load(self.path, mmap_mode="r")
                rank, world = dist.get_rank(), dist.get_world_size()
                usable = len(rows) - len(rows) % 32
                for start in range(rank * 32, usable, world * 32):
                    yield rows[start]

        def train(x, epochs):
            even, uneven = Loader("/tmp", 1, "a"), Uneven("/tmp", 1, "a")
            for epoch in range(epochs):
                even.shuffle(epoch, epoch == 0)
                for row in even:
                    dist.all_reduce(x)
                uneven.shuffle(epoch, epoch == 0)
                for row in uneven:
                    dist.all_reduce(x)  # SPG401
        """,
        *RULES,
    )


def test_parts_of_what_was_made_for_the_rank_are_as_long_everywhere() -> None:
    """Several loaders made at once for a rank of a world: unpacked, by index, key or attribute; not by the rank."""
    assert agree(
        """
        import torch.distributed as dist

        def unpacked(make, score):
            train, held_out = make(dist.get_rank(), dist.get_world_size())
            for x in train:
                dist.all_reduce(score(x))
            for x in held_out:
                dist.all_reduce(score(x))

        def chosen(make, score):
            loaders = make(dist.get_rank(), dist.get_world_size())
            for x in loaders[0]:
                dist.all_reduce(score(x))
            for x in loaders["train"]:
                dist.all_reduce(score(x))
            for x in loaders.train:
                dist.all_reduce(score(x))

        def by_rank_alone(make, score):
            train, held_out = make(dist.get_rank())
            for x in train:
                dist.all_reduce(score(x))  # SPG401

        def one_for_each(make, score):
            loaders = make(dist.get_rank(), dist.get_world_size())
            for x in loaders[dist.get_rank()]:
                dist.all_reduce(score(x))  # SPG401
        """,
        *RULES,
    )


def test_a_subset_is_as_long_as_its_indices() -> None:
    """What is selected from a data set counts, not the set itself; an even share stays even in the loader around it."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.utils import data
        from torch.utils.data import DataLoader, Subset, TensorDataset

        def even(dataset, x):
            rank, world = dist.get_rank(), dist.get_world_size()
            usable = len(dataset) // world * world
            part = Subset(dataset, range(rank, usable, world))
            for item in part:
                dist.all_reduce(x)
            for batch in DataLoader(part, batch_size=4):
                dist.all_reduce(x)

        def uneven(dataset, x):
            rank, world = dist.get_rank(), dist.get_world_size()
            for batch in DataLoader(Subset(dataset, range(rank, len(dataset), world)), batch_size=4):
                dist.all_reduce(x)  # SPG401
            for item in data.Subset(dataset, indices=list(range(rank * 10))):
                dist.all_reduce(x)  # SPG401

        def of_shards(rows, x):
            rank, world = dist.get_rank(), dist.get_world_size()
            mine = TensorDataset(rows[rank::world])
            for batch in DataLoader(mine, batch_size=4):
                dist.all_reduce(x)  # SPG401
            for batch in DataLoader(Subset(mine, range(100)), batch_size=4):
                dist.all_reduce(x)
        """,
        *RULES,
    )


def test_pieces_of_which_each_rank_takes_every_so_many() -> None:
    """As many pieces as a multiple of the ranks are shared evenly; another number of pieces is not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def padded(seeds, size):
            number = ((len(seeds) - 1) // (size * dist.get_world_size()) + 1) * dist.get_world_size()
            pieces = torch.as_tensor(seeds).tensor_split(number)
            for mine in pieces[dist.get_rank() :: dist.get_world_size()]:
                dist.barrier()

        def by_name(x, size, rank, num_gpus):
            number = ((x.shape[0] - 1) // size // num_gpus + 1) * num_gpus
            for mine in x.chunk(number)[rank::num_gpus]:
                dist.barrier()

        def not_padded(seeds, size):
            number = (len(seeds) - 1) // size + 1
            pieces = torch.as_tensor(seeds).tensor_split(number)
            for mine in pieces[dist.get_rank() :: dist.get_world_size()]:
                dist.barrier()  # SPG401
        """,
        "SPG401",
    )


def test_drawn_numbers_in_pieces() -> None:
    """What each rank draws for itself has as many pieces everywhere, unless their size is drawn as well."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def drawn(phases, n, width):
            noise = [z.split(4) for z in torch.randn([len(phases) * n, width]).split(n)]
            for phase, z in zip(phases, noise):
                dist.all_reduce(phase)

        def of_drawn_size(n, width):
            for z in torch.randn([n, width]).split(torch.randint(1, 5, (1,)).item()):
                dist.all_reduce(z)  # SPG401
        """,
        "SPG401",
    )
