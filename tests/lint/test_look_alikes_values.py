"""Kinds of values that look rank-varying and are not, each beside a sibling that is.

The kinds were met in real packages; the snippets are made up. A kind that is silent while its sibling is reported
was mended where it arose, and not by saying less.
"""

from __future__ import annotations

from tests.lint.rules.marked import agree

ARMS = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105")


def test_numbers_are_never_none() -> None:
    """Whether a number that was computed from the rank is None, however long the computation; a None of one rank."""
    assert agree(
        """
        import torch.distributed as dist

        def shard(size, start=None):
            if start is None:
                first = dist.get_rank() * size + 1
                second = first * first + first
                start = second * second + second
            if start is None:
                dist.barrier()
            return start

        def chosen(size):
            start = size if dist.get_rank() == 0 else None
            if start is None:
                dist.barrier()  # SPG101
            return start
        """,
        *ARMS,
    )


def test_items_of_what_the_rank_selects_are_data() -> None:
    """The batches of a loader that was made for this rank are its data, no ranks: they are likely to differ."""
    assert agree(
        """
        import loading
        import torch.distributed as dist

        def train(model, dataset):
            for batch in loading.batches(dataset, dist.get_rank()):
                loss = model(batch)
                if loss > 3:
                    dist.all_reduce(loss)  # SPG305

        def select(model, dataset):
            for batch in loading.batches(dataset):
                loss = model(batch)
                if dist.get_rank() > 3:
                    dist.all_reduce(loss)  # SPG101
        """,
        *ARMS,
        "SPG305",
    )


def test_seed_that_is_drawn_from_a_clock() -> None:
    """A range check of a drawn number is no deadline; a deadline is."""
    assert agree(
        """
        import random
        import time

        import torch.distributed as dist

        def draw():
            return random.Random(int(time.time_ns())).randint(0, 100)

        def seed_all(seed=None):
            if seed is None:
                seed = draw()
            if seed < 0 or seed > 100:
                raise ValueError(seed)
            dist.broadcast_object_list([seed], src=0)

        def wait(deadline):
            if time.time() > deadline:
                raise TimeoutError  # SPG205
            dist.barrier()
        """,
        "SPG205",
    )


def test_slice_of_a_sample() -> None:
    """A slice whose bounds were found in the data is no share of a rank; one that starts at the rank is."""
    assert agree(
        """
        import random

        import torch.distributed as dist

        def mask(tokens, spans):
            order = random.sample(range(len(tokens)), len(tokens))
            begin = 0
            for span in spans(dist.get_rank()):
                begin = span[-1] + 1
            return order[begin:]

        def share(items):
            order = random.sample(range(len(items)), len(items))
            return order[dist.get_rank() :: dist.get_world_size()]  # SPG309
        """,
        "SPG309",
    )


def test_longer_helper_that_asks_for_kinds_only() -> None:
    """What a helper of some length makes of rank-varying arguments is read, also where it calls itself."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.distributed.tensor import DTensor

        def is_sharded(state):
            for value in state.values():
                if isinstance(value, DTensor):
                    return True

                elif isinstance(value, dict):
                    inner = is_sharded(value)

                    if inner:

                        return True

                else:
                    continue

            return False

        def is_large(state):
            for value in state.values():
                if value.sum() > 3:
                    return True

                elif value.mean() > 4:

                    return True

                else:

                    continue

                continue

            return False

        def save(loader):
            for batch in loader:
                if is_sharded(batch):
                    dist.barrier()

        def save_large(loader):
            for batch in loader:
                if is_large(batch):
                    dist.barrier()  # SPG305
        """,
        "SPG305",
    )


def test_keys_of_what_holds_a_share() -> None:
    """Which keys a mapping has that holds this rank's share, and the share's dimensions; not what is in the share."""
    assert agree(
        """
        import torch.distributed as dist

        def score(data, values, model):
            start = dist.get_rank() * len(data)
            data["share"] = values[start : start + len(data)]
            if "weights" in data and data["share"].dim() > 1:
                dist.barrier()
            if data["share"].sum() > 0:
                dist.barrier()  # SPG305
        """,
        *ARMS,
        "SPG305",
    )


def test_names_in_a_batch() -> None:
    """Which entries a batch has is its structure, asked one by one or in a loop over the keys; their values are not."""
    assert agree(
        """
        import pytorch_lightning as pl

        MONITORED = ("kl", "nll", "mse")
        OTHERS = [make_name(1), make_name(2)]

        class Model(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                for key in batch.keys():
                    if key == "speech":
                        self.manual_backward(self(batch[key]))
                    elif key == "text":
                        self.log("a", 1.0, sync_dist=True)
                for key, value in batch.items():
                    if key == "image":
                        self.manual_backward(self(value))
                    if value.sum() > 3:
                        self.manual_backward(self(value))  # SPG305
                for name in MONITORED:
                    if name in batch:
                        self.log(name, batch[name], sync_dist=True)
                for name in OTHERS:
                    if name in batch:
                        self.log(name, batch[name], sync_dist=True)
                    if name in batch["text"]:
                        self.log(name, 1.0, sync_dist=True)  # SPG305
        """,
        "SPG305",
    )


def test_entries_written_in_the_order_of_a_set() -> None:
    """A mapping filled in the order of a set has as many entries on every rank, in an order of their own."""
    assert agree(
        """
        import torch.distributed as dist

        def report(first, second):
            totals = {}
            for name in set(first.keys()) | set(second.keys()):
                totals[name] = first[name] + second[name]
            for name, total in totals.items():
                dist.all_reduce(total)  # SPG403
        """,
        "SPG401",
        "SPG403",
    )


def test_handles_that_the_device_waits_for() -> None:
    """A class that drops handles and waits for the whole device before it steps; one that does not wait."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Waiting:
            def reduce(self, grad):
                dist.all_reduce(grad, async_op=True)

            def step(self):
                torch.cuda.synchronize()

        class Careless:
            def reduce(self, grad):
                dist.all_reduce(grad, async_op=True)  # SPG603

            def step(self):
                return None
        """,
        "SPG603",
    )


def test_progress_bar_of_one_rank() -> None:
    """A wrapper around the loader on one rank gives the same rounds; another loader on one rank does not."""
    assert agree(
        """
        import torch.distributed as dist

        class Bar:
            def __init__(self, iterable, total):
                self.iterable = iterable
                self.total = total

            def __iter__(self):
                return iter(self.iterable)

        def train(loader, step):
            rounds = enumerate(loader)
            if dist.get_rank() == 0:
                rounds = Bar(enumerate(loader), 3)
            for i, batch in rounds:
                step(batch)
                if i % 10 == 0:
                    dist.barrier()

        def train_on_others(loader, other, step):
            rounds = enumerate(loader)
            if dist.get_rank() == 0:
                rounds = Bar(other, 3)
            for i, batch in rounds:
                step(batch)
                if i % 10 == 0:
                    dist.barrier()  # SPG101
        """,
        *ARMS,
    )


def test_part_of_a_model_that_was_found_here_or_there() -> None:
    """How many layers a model has that a file test found in one of two places; the file test itself decides."""
    assert agree(
        """
        import os

        import hub
        import torch.distributed as dist

        def reduce(path, grads):
            model = hub.restore(path) if os.path.exists(path) else hub.fetch(path)
            for layer in range(model.num_layers):
                dist.all_reduce(grads[layer])
            for name in os.listdir(path):
                dist.all_reduce(grads[name])  # SPG401
        """,
        "SPG401",
    )


def test_rank_at_the_end_of_a_long_condition() -> None:
    """The rank is still seen in a condition that is too long to keep: a split barrier, and one with a half missing."""
    assert agree(
        """
        import torch.distributed as dist

        def first(a, b, c, load):
            p, q, r = a.x * a.y + a.z * a.w, b.x * b.y + b.z * b.w, c.x * c.y + c.z * c.w
            if p > 1 and q > 2 and r > 3 and dist.get_rank() != 0:
                dist.barrier()
            load(a, b)
            if p > 1 and q > 2 and r > 3 and dist.get_rank() == 0:
                dist.barrier()

        def half(a, b, c, load):
            p, q, r = a.x * a.y + a.z * a.w, b.x * b.y + b.z * b.w, c.x * c.y + c.z * c.w
            if p > 1 and q > 2 and r > 3 and dist.get_rank() != 0:
                dist.barrier()  # SPG101
            load(a, b)
        """,
        "SPG101",
    )


def test_vote_through_a_wrapper_with_stars() -> None:
    """A flag that a decorated function reduces in place is agreed on; one that it only prints is not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def timed(function):
            def wrapper(*args, **kwargs):
                try:
                    return function(*args, **kwargs)
                finally:
                    print("done")

            return wrapper

        @timed
        def reduce(tensor, op=None):
            return dist.all_reduce(tensor, op)

        @timed
        def show(tensor, op=None):
            print(tensor, op)

        def work(task):
            failed = 0
            try:
                task()
            except RuntimeError:
                failed = 1
            flag = torch.tensor([failed])
            reduce(flag)
            if flag.item() == 1:
                return
            dist.barrier()

        def work_alone(task):
            failed = 0
            try:
                task()
            except RuntimeError:
                failed = 1
            flag = torch.tensor([failed])
            show(flag)
            if flag.item() == 1:
                return  # SPG102
            dist.barrier()
        """,
        "SPG102",
    )


def test_table_gathered_by_an_unknown_backend() -> None:
    """What a backend gathers into a tensor that it gets by keyword is the same on every rank; what it got is not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        from here import backend

        def check(size):
            own = torch.tensor([dist.get_rank() * size])
            table = torch.empty(4)
            backend.all_gather_into_tensor(output_tensor=table, input_tensor=own)
            if table.sum() > 3:
                raise ValueError(table)
            dist.barrier()

        def check_own(size):
            own = torch.tensor([dist.get_rank() * size])
            table = torch.empty(4)
            backend.all_gather_into_tensor(output_tensor=table, input_tensor=own)
            if own.sum() > 3:
                raise ValueError(own)  # SPG205
            dist.barrier()
        """,
        "SPG205",
    )


def test_index_given_for_the_rank() -> None:
    """A function that asks for the rank only where it gets none, called for each rank in turn and for this one."""
    assert agree(
        """
        import torch.distributed as dist

        def share(total, world, rank=None):
            if rank is None:
                rank = dist.get_rank()
            return total // world + (1 if rank < total % world else 0)

        def shares_of_all(total, world):
            shares = [share(total, world, rank) for rank in range(world)]
            if min(shares) == 0:
                dist.barrier()

        def own_share(total, world):
            if share(total, world) == 0:
                dist.barrier()  # SPG101
        """,
        "SPG101",
    )


def test_where_tensors_stand() -> None:
    """Whether tensors are on the meta device is how the model was made; whether one holds a NaN is its contents."""
    assert agree(
        """
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import get_model_state_dict

        def load(model, path):
            state = get_model_state_dict(model)
            if any(value.is_meta for value in state.values()):
                raise ValueError("materialise the tensors first")
            dcp.load(state, path)

        def load_finite(model, path):
            state = get_model_state_dict(model)
            if any(value.isnan().any() for value in state.values()):
                raise ValueError("not finite")  # SPG205
            dcp.load(state, path)
        """,
        "SPG205",
    )


def test_totals_that_are_set_back() -> None:
    """``{key: 0 for key in totals}`` has the keys of before; names from own data do not."""
    assert agree(
        """
        import torch.distributed as dist

        def totals(model, loader, every):
            running = {"a": 0, "b": 0}
            for step, batch in enumerate(loader):
                running["a"] += model(batch).mean()
                if step % every == 0:
                    for key in running:
                        dist.all_reduce(running[key])
                    running = {key: 0 for key in running}

        def of_batches(model, dataloader):
            for batch in dataloader:
                seen = {int(label): model(batch) for label in batch["labels"]}
                for key in seen:
                    dist.all_reduce(seen[key])  # SPG401
        """,
        "SPG401",
    )
