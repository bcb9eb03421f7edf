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


def test_lists_in_an_order_of_their_own() -> None:
    """Reversed, rotated, sorted and shuffled by the rank, in place, in a choice, and in an object's field."""
    assert agree(
        """
        import random
        from collections import deque

        import torch
        import torch.distributed as dist

        def reversed_in_place(table):
            queue = list(table.values())
            if dist.get_rank() % 2:
                queue.reverse()
            for tensor in queue:
                dist.all_reduce(tensor)  # SPG403

        def chosen(tensors):
            order = tensors[::-1] if dist.get_rank() % 2 else tensors
            for tensor in order:
                dist.all_reduce(tensor)  # SPG403

        def reversed_anew(tensors):
            order = list(range(len(tensors)))
            if dist.get_rank():
                order = list(reversed(order))
            for position, index in enumerate(order):
                dist.all_reduce(tensors[index])  # SPG403

        def rotated(tensors):
            rank = dist.get_rank()
            for tensor in tensors[rank:] + tensors[:rank]:
                dist.all_reduce(tensor)  # SPG403

        def turned(tensors):
            queue = deque(tensors)
            queue.rotate(dist.get_rank())
            for tensor in queue:
                dist.all_reduce(tensor)  # SPG403

        def sorted_by_rank(table):
            for name in sorted(table, reverse=dist.get_rank() == 0):
                dist.all_reduce(table[name])  # SPG403

        def by_key(tensors):
            rank = dist.get_rank()
            tensors.sort(key=lambda tensor: (tensor.numel() + rank) % 3)
            for tensor in tensors:
                dist.all_reduce(tensor)  # SPG403

        def shuffled(tensors):
            random.shuffle(tensors)
            for tensor in tensors:
                dist.all_reduce(tensor)  # SPG403

        def own_generator(tensors):
            generator = random.Random(dist.get_rank())
            generator.shuffle(tensors)
            for tensor in tensors:
                dist.all_reduce(tensor)  # SPG403

        def drawn(tensors):
            for index in torch.randperm(len(tensors)):
                dist.all_reduce(tensors[index])  # SPG403

        def written(weight, bias):
            for tensor in [weight, bias] if dist.get_rank() == 0 else [bias, weight]:
                dist.all_reduce(tensor)  # SPG403

        def filled(weight, bias):
            table = {}
            if dist.get_rank() == 0:
                table["weight"] = weight
                table["bias"] = bias
            else:
                table["bias"] = bias
                table["weight"] = weight
            for name, tensor in table.items():
                dist.all_reduce(tensor)  # SPG403

        class Buckets:
            def __init__(self, params):
                self.buckets = [p for p in params]
                if dist.get_rank() % 2 == 1:
                    self.buckets.reverse()

            def sync(self):
                return [dist.all_reduce(bucket) for bucket in self.buckets]  # SPG403

        def use(params):
            Buckets(params).sync()
        """,
        *ORDER,
    )


def test_lists_in_one_order() -> None:
    """Reversed on every rank, by the world size, sorted again, shuffled with one seed, and local work by rank."""
    assert agree(
        """
        import random

        import torch
        import torch.distributed as dist

        def everywhere(table):
            queue = list(table.values())
            if dist.get_world_size() % 2:
                queue.reverse()
            for tensor in queue:
                dist.all_reduce(tensor)

        def sorted_again(names, table):
            if dist.get_rank() % 2:
                names.reverse()
            for name in sorted(names):
                dist.all_reduce(table[name])

        def sorted_in_place(names, table):
            names = list(names)
            if dist.get_rank() % 2:
                names.reverse()
            names.sort()
            for name in names:
                dist.all_reduce(table[name])

        def one_key(tensors):
            tensors.sort(key=lambda tensor: tensor.numel(), reverse=True)
            for tensor in tensors:
                dist.all_reduce(tensor)

        def one_seed(tensors):
            generator = random.Random(0)
            generator.shuffle(tensors)
            for tensor in tensors:
                dist.all_reduce(tensor)

        def seeded(tensors, epoch):
            generator = torch.Generator()
            generator.manual_seed(epoch)
            for index in torch.randperm(len(tensors), generator=generator):
                dist.all_reduce(tensors[index])

        def local(names, x):
            if dist.get_rank() == 0:
                names.reverse()
            for name in names:
                print(name)
            dist.all_reduce(x)

        def same_items(weight, bias):
            for tensor in [weight, bias] if dist.get_rank() == 0 else [weight, bias]:
                dist.all_reduce(tensor)

        def peers(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            ranks = list(range(world))
            for peer in ranks[rank:] + ranks[:rank]:
                print(peer)
            dist.all_reduce(x)
        """,
        *ORDER,
    )


def test_known_miss_computed_index() -> None:
    """Items that are taken by an index with the rank in it are not followed."""
    assert agree(
        """
        import torch.distributed as dist

        def computed(tensors):
            rank = dist.get_rank()
            for index in range(len(tensors)):
                dist.all_reduce(tensors[(index + rank) % len(tensors)])
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


def test_groups_in_another_order() -> None:
    """Groups of the same ranks, taken in an order of each rank's own; those without common members may be."""
    assert agree(
        """
        import torch.distributed as dist

        def twins(x):
            world, twin = dist.group.WORLD, dist.new_group()
            order = [twin, world]
            if dist.get_rank() % 2:
                order.reverse()
            for group in order:
                dist.all_reduce(x, group=group)  # SPG403

        def chosen(x):
            first, second = dist.new_group([0, 1]), dist.new_group([1, 0])
            for i, group in enumerate([first, second] if dist.get_rank() else [second, first]):
                dist.barrier(group=group)  # SPG403

        def alike(x):
            order = [dist.new_group(), None]
            if dist.get_world_size() % 2:
                order.reverse()
            for group in order:
                dist.all_reduce(x, group=group)

        def without_common_members(x):
            order = [dist.new_group([0, 1]), dist.new_group([2, 3])]
            if dist.get_rank() > 1:
                order.reverse()
            for group in order:
                dist.barrier(group=group)

        def own(names):
            mine = dist.new_group([0, 1]) if dist.get_rank() < 2 else dist.new_group([2, 3])
            for name in set(names):
                dist.barrier(group=mine)
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


def test_samples_in_another_order() -> None:
    """Which sample a wrapped model gets makes no difference; which loss is passed back does, and how many there are.

    A forward pass tells nothing of that, so the finding stands at the loop.
    """
    assert agree(
        """
        import random
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        def train(net, files):
            model = DistributedDataParallel(net)
            random.shuffle(files)
            for name in files:
                loss = model(name).sum()
                loss.backward()

        def losses(net, x):
            y = DistributedDataParallel(net)(x)
            for loss in {y.sum(), y.mean()}:
                loss.backward()  # SPG403

        class Heads:
            def __init__(self, nets):
                self.heads = {name: DistributedDataParallel(net) for name, net in nets.items()}

            def loss(self, name, x):
                return self.heads[name](x).sum()

            def train(self, names, x):
                random.shuffle(names)
                for name in names:  # SPG403
                    self.loss(name, x).backward()

            def by_local_name(self, names, x):
                random.shuffle(names)
                for name in names:  # SPG403
                    head = self.heads[name]
                    head(x).sum().backward()

        def own_share(net, files, epoch):
            model = DistributedDataParallel(net)
            mine = list(files[dist.get_rank()::dist.get_world_size()])
            random.Random(epoch).shuffle(mine)
            for name in mine:  # SPG401
                model(name).sum().backward()
        """,
        "SPG401",
        "SPG403",
    )


def test_keys_written_down_once() -> None:
    """``dict.fromkeys`` keeps the order and the number of its keys; sets of keys have an order of their own."""
    assert agree(
        """
        import random
        import torch
        import torch.distributed as dist

        WANTED = {"loss", "norm"}

        def means(table):
            sums = dict.fromkeys(("loss", "norm", "steps"), 0.0)
            sums["loss"] += torch.randn(4).mean().item()
            for name in sorted(WANTED & sums.keys()):
                dist.all_reduce(table[name])
            for name in sums:
                dist.all_reduce(table[name])
            for name in WANTED & sums.keys():
                dist.all_reduce(table[name])  # SPG403
            for name in sums.keys() & {"loss": 1, "norm": 2}.keys():
                dist.all_reduce(table[name])  # SPG403
            for index in {0: "loss", 1: "norm"}.keys() & {0: 1}.keys():
                dist.all_reduce(table[index])

        def uniquely(names, table):
            for name in dict.fromkeys(names):
                dist.all_reduce(table[name])
            for name in dict.fromkeys(WANTED):
                dist.all_reduce(table[name])  # SPG403
            for name in dict.fromkeys(list(WANTED), 1).items():
                dist.all_reduce(table[name])  # SPG403

        def drawn(table):
            for number in dict.fromkeys([random.randint(0, 4) for _ in range(5)]):
                dist.all_reduce(table[number])  # SPG401
            for number in dict.fromkeys(range(dist.get_rank())):
                dist.all_reduce(table[number])  # SPG401

        def chosen(tables):
            if dict.fromkeys(["root", "other"], dist.get_rank())["root"] == 0:
                dist.barrier()  # SPG101
        """,
        "SPG101",
        "SPG401",
        "SPG403",
    )


def test_names_of_a_sorted_dict() -> None:
    """What is sorted of a dict are its keys, whatever stands under them; pairs that were sorted have an order."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        WANTED = {"forces", "stress"}

        def chosen(values):
            return {name: values[name] for name in WANTED}

        def by_name(name, value):
            if name == "forces":
                dist.all_gather([torch.empty(3)], value)
            else:
                dist.all_reduce(value)

        def main():
            outputs = chosen({"forces": torch.randn(3), "stress": torch.ones(3) * dist.get_rank()})
            for name in sorted(outputs):
                by_name(name, outputs[name])
            for name in sorted(outputs.keys()):
                by_name(name, outputs[name])
            for name, value in sorted(outputs.items()):
                by_name(name, value)
            for name, value in outputs.items():
                dist.all_reduce(value)  # SPG403

        main()
        """,
        "SPG101",
        "SPG103",
        "SPG303",
        "SPG403",
    )
