"""SPG401: for loops of another length on each rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree

TRIPS = ("SPG101", "SPG102", "SPG401", "SPG402", "SPG403")


def test_lengths_by_rank_or_data() -> None:
    """Shares by slicing, ranges up to the rank, filtered lists, local files, generators."""
    assert agree(
        """
        import glob
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def sliced(files, score):
            for file in files[dist.get_rank() :: dist.get_world_size()]:
                dist.all_reduce(score(file))  # SPG401

        def up_to_the_rank(x):
            for turn in range(dist.get_rank()):
                dist.all_reduce(x)  # SPG401

        def local_files(folder, x):
            for name in glob.glob(folder + "/*.bin"):
                dist.all_reduce(x)  # SPG401

        def loaded_items(folder, x):
            for item in torch.load(f"{folder}/items-{dist.get_rank()}.pt")["items"]:
                dist.all_reduce(x)  # SPG401

        def one_barrier_too_few(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            for _ in range(rank + 1):
                dist.barrier()  # SPG401
            print(x)
            for _ in range(world - rank, world):
                dist.barrier()  # SPG401

        def left_where_all_would(x, mode):
            turn = 0
            while turn < dist.get_rank():  # SPG402
                if mode != "fast":
                    return
                turn += 1
            dist.all_reduce(x)

        def left_in_the_first_round(files, x):
            for file in files[dist.get_rank() :: dist.get_world_size()]:  # SPG401
                return file
            dist.all_reduce(x)

        def own(files):
            for number, file in enumerate(files):
                if number % dist.get_world_size() == dist.get_rank():
                    yield file

        def generated(files, score):
            for file in own(files):
                dist.all_reduce(score(file))  # SPG101

        def comprehension(files, score):
            mine = files[dist.get_rank() :: dist.get_world_size()]
            return [dist.all_reduce(score(file)) for file in mine]  # SPG401
        """,
        *TRIPS,
    )


def test_shared_lengths_are_silent() -> None:
    """Loaders, equal shares, padded lists, loops whose collective stands behind them, and Join."""
    assert agree(
        """
        import os
        import torch
        import torch.distributed as dist
        from torch.distributed.algorithms.join import Join
        from torch.nn.parallel import DistributedDataParallel as DDP
        from torch.utils.data import DataLoader, DistributedSampler

        def loader(dataset, model):
            batches = DataLoader(dataset, sampler=DistributedSampler(dataset))
            for batch in batches:
                dist.all_reduce(model(batch))

        def equal_shares(files, score):
            world, rank = dist.get_world_size(), dist.get_rank()
            for turn in range(len(files) // world):
                dist.all_reduce(score(files[turn * world + rank]))

        def behind(files, score):
            total = torch.zeros(())
            for file in files[dist.get_rank() :: dist.get_world_size()]:
                total += score(file)
            dist.all_reduce(total)

        def joined(net, mine):
            model = DDP(net)
            with Join([model]):
                for batch in mine[dist.get_rank() :: 2]:
                    model(batch).sum().backward()

        def constant(x):
            for turn in range(3):
                dist.all_reduce(x)

        def resumed(folder, num_steps, x):
            saved = torch.load(f"{folder}/state-{dist.get_rank()}.pt")
            for step in range(saved["step"], num_steps):
                dist.all_reduce(x)

        def resumed_by_default(folder, num_steps, x):
            step = torch.load(f"{folder}/state-{dist.get_rank()}.pt")["trainer"].get("step", 0)
            for step in range(step, num_steps):
                dist.all_reduce(x)

        def one_after_the_other(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            for _ in range(rank):
                dist.barrier()
            print(x)
            for _ in range(world - rank):
                dist.barrier()

        def judged_on_its_own(files, score):
            scores = [checked(file) for file in files[dist.get_rank() :: dist.get_world_size()]]
            dist.all_reduce(scores)

        def checked(file):
            if not file:  # the rule for raises has this one
                raise ValueError(file)
            return 1

        def sorted_listing(folder, score):
            rank, world = dist.get_rank(), dist.get_world_size()
            names = sorted(name for name in os.listdir(folder) if name.endswith(".bin"))
            usable = len(names) - len(names) % world
            for name in names[rank:usable:world]:
                dist.all_reduce(score(name))
        """,
        *TRIPS,
    )


def test_how_many_numbers_are_drawn() -> None:
    """A tensor of random numbers is as long on every rank; a random number of rounds is not."""
    assert agree(
        """
        import random
        import torch
        import torch.distributed as dist

        def by_length(x):
            rows = torch.randn(512, 39)
            for _ in range(len(rows) // 64):
                dist.all_reduce(x)

        def in_random_order(x, n):
            for _ in torch.randperm(n):
                dist.all_reduce(x)

        def by_number(x):
            for _ in range(random.randint(1, 5)):
                dist.all_reduce(x)  # SPG401

        def by_drawn_number(x):
            for _ in range(int(torch.randint(1, 5, (1,)))):
                dist.all_reduce(x)  # SPG401

        def by_item(x):
            for _ in range(torch.randint(1, 5, (1,)).item()):
                dist.all_reduce(x)  # SPG401

        def chosen(x, xs):
            for _ in xs[torch.rand(len(xs)) < 0.5]:
                dist.all_reduce(x)  # SPG401
        """,
        "SPG401",
    )


def test_a_search_evaluates_as_often_as_own_values_ask_for() -> None:
    """L-BFGS and scipy call a function that communicates, until its values are good enough."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from scipy.optimize import minimize
        from torch.optim import LBFGS
        from torch.utils.data import DataLoader

        def average(x):
            dist.all_reduce(x)
            return x / dist.get_world_size()

        def own(model, loader: DataLoader):
            solver = LBFGS(model.parameters())
            for batch in loader:
                def closure():
                    loss = model(batch).mean()
                    loss.backward()
                    average(model.weight.grad)
                    return loss

                solver.step(closure)  # SPG401

        class Fit:
            def __init__(self, model, loader: DataLoader):
                self.model, self.batch = model, next(iter(loader))
                self.solver = torch.optim.LBFGS(model.parameters())

            def closure(self):
                average(self.model.weight.grad)
                return self.batch.sum()

            def run(self, start):
                self.solver.step(closure=self.closure)  # SPG401
                minimize(lambda x: average(x) and self.batch.sum().item(), start)  # SPG401
        """,
        "SPG401",
    )


def test_a_search_on_agreed_values_is_silent() -> None:
    """The closure returns a mean over all ranks, or communicates nothing; SGD calls a closure once."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.optim import LBFGS, SGD
        from torch.utils.data import DataLoader

        def average(x):
            dist.all_reduce(x)
            return x / dist.get_world_size()

        def agreed(model, loader: DataLoader):
            solver, plain = LBFGS(model.parameters()), SGD(model.parameters())
            for batch in loader:
                def closure():
                    loss = model(batch).mean()
                    loss.backward()
                    average(model.weight.grad)
                    mean = loss.detach().clone()
                    dist.all_reduce(mean)
                    return mean

                def once():
                    loss = model(batch).mean()
                    average(model.weight.grad)
                    return loss

                solver.step(closure)
                plain.step(once)
                solver.step(lambda: model(batch).mean())
        """,
        "SPG401",
    )


def test_data_sets_split_by_node() -> None:
    """A share of a data set by rank and world size, which is neither padded nor cut to the shortest."""
    assert agree(
        """
        import torch.distributed as dist
        from datasets import load_dataset
        from datasets.distributed import split_dataset_by_node
        from torch.utils.data import DataLoader
        from torch.nn.parallel import DistributedDataParallel as DDP

        def stream(files):
            rows = load_dataset("json", data_files=files, split="train", streaming=True)
            rows = split_dataset_by_node(rows, rank=dist.get_rank(), world_size=dist.get_world_size())
            return DataLoader(rows, batch_size=16)

        def train(net, files):
            model = DDP(net)
            for batch in stream(files):  # SPG401
                model(batch).sum().backward()

        def shards(net, files):
            model = DDP(net)
            rows = load_dataset("json", data_files=files, split="train")
            mine = rows.shard(num_shards=dist.get_world_size(), index=dist.get_rank())
            for row in mine:  # SPG401
                model(row).sum().backward()

        def agreed(net, files):
            model = DDP(net)
            batches = iter(stream(files))
            while True:
                batch = next(batches, None)
                ready = [batch is not None]
                everyone = [None] * dist.get_world_size()
                dist.all_gather_object(everyone, ready)
                if not all(one[0] for one in everyone):
                    break
                model(batch).sum().backward()

        def for_steps(net, files, steps):
            model = DDP(net)
            batches = iter(stream(files))
            for _ in range(steps):
                model(next(batches)).sum().backward()

        def joined(net, files):
            model = DDP(net)
            with model.join():
                for batch in stream(files):
                    model(batch).sum().backward()
        """,
        "SPG401",
    )


def test_reader_whose_errors_are_kept() -> None:
    """A generator under `@rank_local` ends early on the rank where it fails."""
    assert agree(
        """
        import csv
        import torch.distributed as dist
        import spmdguard
        from spmdguard import sync_should_stop

        @spmdguard.rank_local
        def rows(path):
            with open(path) as file:
                for row in csv.reader(file):
                    yield row

        class Reader:
            @spmdguard.rank_local(name="reader")
            def rows(self, path):
                for part in ("a", "b"):
                    yield open(path + part).read()

        def direct(path, x):
            for row in rows(path):
                dist.all_reduce(x)  # SPG401

        def method(path, x):
            for row in Reader().rows(path):
                dist.all_reduce(x)  # SPG401
                if sync_should_stop():
                    break

        def agreed(path, x):
            read = rows(path)
            while True:
                row = next(read, None)
                if sync_should_stop(row is None):
                    break
                dist.all_reduce(x)

        def local(path):
            return sum(len(row) for row in rows(path))

        @spmdguard.rank_local
        def steps(n):
            for step in range(n):
                yield step

        def numbers(n, x):
            for step in steps(n):
                dist.all_reduce(x)

        @spmdguard.rank_local
        def patient(paths):
            for path in paths:
                try:
                    text = open(path).read()
                except OSError:
                    text = ""
                yield text

        def skipping(paths, x):
            for text in patient(paths):
                dist.all_reduce(x)
        """,
        "SPG401",
        "SPG201",
    )


def test_dicts_that_one_rank_empties() -> None:
    """A copy in sorted order is as long as the dict or set: what one rank has emptied is shorter there."""
    assert agree(
        """
        import functools
        import torch.distributed as dist

        def on_main(fn):
            @functools.wraps(fn)
            def wrapper(*args, **kwargs):
                if dist.get_rank() == 0:
                    return fn(*args, **kwargs)
            return wrapper

        class TrackerHook:
            @on_main
            def after_interval(self, runner):
                print(runner.buffer)
                runner.buffer.clear()

        class PrintingHook:
            @on_main
            def behind_interval(self, printer):
                print(printer.shown)

        class Runner:
            def __init__(self, model, hooks):
                self.model, self.hooks = model, hooks
                self.buffer = {}

            def train(self, loader):
                for batch in loader:
                    self.buffer.update(self.model(batch))
                    for key in sorted(self.buffer):
                        dist.all_reduce(self.buffer[key])  # SPG401
                    for hook in self.hooks:
                        hook.after_interval(self)

        class Printer:
            def __init__(self, model, hooks):
                self.model, self.hooks = model, hooks
                self.shown = {}

            def train(self, loader):
                for batch in loader:
                    self.shown.update(self.model(batch))
                    for key in sorted(self.shown):
                        dist.all_reduce(self.shown[key])
                    for hook in self.hooks:
                        hook.behind_interval(self)
                    self.shown.clear()

        def keyed(xs):
            pending = {}
            for name, x in xs:
                pending[name] = x
                for one in list(pending):
                    dist.all_reduce(pending[one])  # SPG401
                if dist.get_rank() == 0:
                    pending.clear()

        def seen(xs):
            pending = set()
            for name, x in xs:
                pending.add(name)
                for _ in sorted(pending, reverse=True):
                    dist.all_reduce(x)  # SPG401
                if dist.get_rank() == 0:
                    pending.discard(name)

        def emptied_by_all(xs):
            pending = {}
            for name, x in xs:
                pending[name] = x
                for one in sorted(pending):
                    dist.all_reduce(pending[one])
                if dist.get_rank() == 0:
                    print(pending)
                pending.clear()
        """,
        "SPG401",
        "SPG403",
    )


def test_even_shares_of_a_list_whose_length_is_known() -> None:
    """A list that is written out has a length: what is cut to a multiple of the ranks is as long on each of them."""
    assert agree(
        """
        import torch.distributed as dist

        FILES = [f"part-{number}" for number in range(23)]
        FEW = ["a", "b", "c", "d", "e"]

        def share(items):
            rank, world = dist.get_rank(), dist.get_world_size()
            return items[: len(items) - len(items) % world][rank::world]

        def uneven(items):
            return items[dist.get_rank() :: dist.get_world_size()]

        def even_ones():
            for _ in [*share(FILES), *share(FEW)]:
                dist.barrier()

        def uneven_ones():
            for _ in uneven(FILES):
                dist.barrier()  # SPG401
            for _ in uneven(FEW):
                dist.barrier()  # SPG401
        """,
        "SPG401",
    )
