"""What this rank's own data decides: selections, queues, sizes of data sets, exceptions of a model."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG104", "SPG202", "SPG205", "SPG305", "SPG401", "SPG402", "SPG403")


def test_a_selection_by_a_mask_is_as_long_as_the_data_says() -> None:
    """``x[mask]``, ``nonzero``, ``unique``: in loops, by shape and by length; a mask of reduced data is the same."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def by_nonzero(scores):
            for index in (scores > 0.5).nonzero().flatten().tolist():
                dist.barrier()  # SPG401

        def by_shape(hidden, labels):
            kept = hidden[labels != -100]
            for start in range(0, kept.shape[0], 8):
                dist.barrier()  # SPG401

        def by_length(labels):
            if len(torch.unique(labels)) > 3:
                dist.barrier()  # SPG305

        def shape_of_the_whole(hidden):
            for start in range(0, hidden.shape[0], 8):
                dist.barrier()

        def reduced_before(scores):
            dist.all_reduce(scores)
            for index in (scores > 0.5).nonzero().flatten().tolist():
                dist.broadcast(scores, src=index)
        """,
        *RULES,
    )


def test_calls_of_what_a_module_wraps_are_collectives() -> None:
    """A forward pass of an FSDP attribute in a loop of this rank's own length, with no collective named anywhere."""
    assert agree(
        """
        from torch import nn
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

        class Describer(nn.Module):
            def __init__(self, trunk, head):
                super().__init__()
                self.trunk, self.plain = FSDP(trunk), head
                self.head = FSDP(head)

            def forward(self, image):
                features, scores = self.trunk(image)
                total = 0
                for index in (scores > 0.5).nonzero().flatten().tolist():
                    total += self.plain(features[index])
                for index in (scores > 0.5).nonzero().flatten().tolist():  # SPG401
                    total += self.head(features[index])
                return total
        """,
        *RULES,
    )


def test_a_queue_holds_what_this_rank_has_put_there() -> None:
    """Filled where a request succeeded and emptied later: emptiness and membership part; registries do not."""
    assert agree(
        """
        import torch.distributed as dist

        class Cache:
            def __init__(self, copier, plugins):
                self.pending, self.plugins, self.steps = {}, [], []
                self.copier = copier
                for plugin in plugins:
                    if plugin.enabled():
                        self.plugins.append(plugin)

            def submit(self, key, block):
                event = self.copier.submit(block)
                if event is None:
                    return
                self.pending[key] = event
                self.steps.append(key)

            def drop(self, key):
                self.pending.pop(key)

            def check(self, count):
                if not self.pending:
                    return  # SPG102
                dist.all_reduce(count)

            def check_one(self, key, count):
                if key not in self.pending:
                    return  # SPG102
                dist.all_reduce(count)

            def run_plugins(self, count):
                if not self.plugins:
                    return
                dist.all_reduce(count)

            def never_emptied(self, count):
                if not self.steps:
                    return
                dist.all_reduce(count)
        """,
        *RULES,
    )


def test_a_loader_is_as_long_as_what_it_draws_from() -> None:
    """Shares by rank and unseeded choices in data sets and samplers reach the loop over the loader."""
    assert agree(
        """
        import numpy as np
        import torch.distributed as dist
        from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, Subset

        class Lines(IterableDataset):
            def __init__(self, files, rank, world):
                self.files = files[rank::world]

            def __iter__(self):
                for path in self.files:
                    yield from open(path)

        class Rows(Dataset):
            def __init__(self, rows):
                self.rows = rows

            def __len__(self):
                return len(self.rows)

        def lines(files, x):
            for batch in DataLoader(Lines(files, dist.get_rank(), dist.get_world_size())):
                dist.all_reduce(x)  # SPG401

        def rows(data, x):
            for batch in DataLoader(Rows(data[dist.get_rank() :: dist.get_world_size()]), batch_size=8):
                dist.all_reduce(x)  # SPG401

        def thinned(data, x):
            chosen = np.random.rand(len(data)) < 0.3
            for batch in DataLoader(Subset(data, np.nonzero(chosen)[0].tolist())):
                dist.all_reduce(x)  # SPG401

        def sampled(data, x):
            rows = Rows(data)
            for batch in DataLoader(rows, sampler=DistributedSampler(rows)):
                dist.all_reduce(x)

        def whole(data, x):
            for batch in DataLoader(Rows(data), batch_size=8):
                dist.all_reduce(x)
        """,
        *RULES,
    )


def test_an_exception_of_the_projects_own_comes_out_of_the_model() -> None:
    """Caught around the forward pass, with the backward pass skipped; raising again is right."""
    assert agree(
        """
        from torch.nn.parallel import DistributedDataParallel as DDP

        class NoAnchors(ValueError):
            pass

        def train(net, loader, optimizer):
            model = DDP(net)
            for batch in loader:
                try:
                    loss = model(batch)
                except NoAnchors:
                    continue  # SPG202
                loss.backward()
                optimizer.step()

        def raised_again(net, loader):
            model = DDP(net)
            for batch in loader:
                try:
                    loss = model(batch)
                except NoAnchors as error:
                    raise RuntimeError("bad batch") from error
                loss.backward()
        """,
        *RULES,
    )


def test_a_backward_pass_in_a_module_that_wraps_models_communicates() -> None:
    """Out of memory caught and skipped in a task whose model is wrapped by another function of the file."""
    assert agree(
        """
        import torch
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Task:
            def step(self, sample, model, optimizer):
                try:
                    loss, size = self.criterion(model, sample)
                    loss.backward()
                except torch.cuda.OutOfMemoryError:
                    torch.cuda.empty_cache()
                    return 0, 0  # SPG203
                optimizer.step()
                return loss.item(), size

        def epoch(task, net, optimizer, batches):
            model = DDP(net)
            for sample in batches:
                task.step(sample, model, optimizer)
        """,
        *RULES,
        "SPG203",
    )


def test_a_context_manager_may_be_a_class_method() -> None:
    """``@classmethod`` over ``@contextmanager``: its finally block runs at the end of the with statement."""
    assert agree(
        """
        import contextlib
        import torch
        import torch.distributed as dist

        class Group:
            def shutdown(self):
                dist.barrier()

            @classmethod
            @contextlib.contextmanager
            def context(cls):
                instance = cls()
                try:
                    yield instance
                finally:
                    instance.shutdown()  # SPG206

        def evaluate(path, total):
            with Group.context():
                total += torch.load(path)
                dist.all_reduce(total)
        """,
        *RULES,
        "SPG206",
    )
