"""SPG305: collectives that depend on this rank's own data."""

from __future__ import annotations

from tests.lint.rules.marked import agree

DATA = ("SPG101", "SPG102", "SPG305", "SPG401", "SPG402")


def test_data_decides() -> None:
    """What a batch holds, a gathered subset, a local statistic."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def positives(loader: DataLoader):
            for batch in loader:
                found = batch["label"].sum()
                if found > 0:
                    dist.all_reduce(found)  # SPG305

        def two_ways(loader: DataLoader):
            for batch in loader:
                if batch["x"].max() > 1:
                    dist.all_reduce(batch["x"])  # SPG305
                else:
                    dist.barrier()

        def kept(loader: DataLoader):
            for batch in loader:
                rows = [row for row in batch["rows"] if row.sum() > 0]
                if rows:
                    dist.all_gather_object([None], rows)  # SPG305
        """,
        *DATA,
    )


def test_shared_data_is_silent() -> None:
    """Reduced and gathered values, the kind of an object, and data that decides nothing collective."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def reduced(loader: DataLoader):
            for batch in loader:
                found = batch["label"].sum()
                dist.all_reduce(found)
                if found > 0:
                    dist.barrier()

        def gathered(loader: DataLoader):
            for batch in loader:
                sizes = [None] * dist.get_world_size()
                dist.all_gather_object(sizes, len(batch))
                if min(sizes) > 0:
                    dist.all_reduce(batch)

        def kind(loader: DataLoader):
            for batch in loader:
                if isinstance(batch, dict):
                    dist.all_reduce(batch["x"])

        def local(loader: DataLoader):
            for batch in loader:
                if batch.sum() > 0:
                    batch = batch * 2
                dist.all_reduce(batch)
        """,
        *DATA,
    )


def test_parts_of_lists_keep_what_their_items_are() -> None:
    """A window of a list that holds this rank's own losses differs between ranks; one of agreed losses does not."""
    assert agree(
        """
        from collections import deque
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        class Plateau:
            def __init__(self):
                self.losses = deque(maxlen=8)

            def reached(self, loss):
                self.losses.append(loss)
                values = list(self.losses)
                return sum(values[:4]) <= sum(values[4:])

        def own(model, batches, steps):
            model = DistributedDataParallel(model)
            plateau, recent = Plateau(), []
            for _ in range(steps):
                loss = model(batches)
                loss.backward()
                recent.append(loss.item())
                if plateau.reached(loss.item()):
                    model = DistributedDataParallel(model.module)  # SPG305
                if min(recent[-3:]) > 1:
                    dist.barrier()  # SPG305

        def agreed(model, batches, steps):
            model = DistributedDataParallel(model)
            plateau, recent = Plateau(), []
            for _ in range(steps):
                loss = model(batches)
                loss.backward()
                mean = loss.detach().clone()
                dist.all_reduce(mean)
                recent.append(mean.item())
                if plateau.reached(mean.item()):
                    model = DistributedDataParallel(model.module)
                if min(recent[-3:]) > 1:
                    dist.barrier()
        """,
        "SPG101",
        "SPG305",
    )


def test_gradients_are_exchanged_by_own_data() -> None:
    """``no_sync`` in its spellings, and DDP's switch: a rank decides by its own batch."""
    assert agree(
        """
        from contextlib import contextmanager, nullcontext
        from torch.nn.parallel import DistributedDataParallel
        from torch.utils.data import DataLoader

        @contextmanager
        def synchronised(model, sync):
            with nullcontext() if sync else model.no_sync():
                yield

        class Loop:
            def __init__(self, model, loader: DataLoader):
                self.model, self.loader = DistributedDataParallel(model), loader

            def arms(self, budget):
                for ids in self.loader:
                    if ids.sum() > budget:
                        self.model(ids).backward()  # SPG305
                    else:
                        with self.model.no_sync():
                            self.model(ids).backward()

            def chosen(self, budget):
                for ids in self.loader:
                    with nullcontext() if ids.sum() > budget else self.model.no_sync():  # SPG305
                        self.model(ids).backward()

            def called(self, budget):
                for ids in self.loader:
                    context = nullcontext if ids.sum() > budget else self.model.no_sync
                    with context():  # SPG305
                        self.model(ids).backward()

            def switched(self, budget):
                for ids in self.loader:
                    self.model.require_backward_grad_sync = ids.sum().item() > budget  # SPG305
                    self.model(ids).backward()
        """,
        "SPG305",
    )


def test_gradients_are_exchanged_by_count() -> None:
    """Every rank accumulates as many steps; what stands within ``no_sync`` may vary."""
    assert agree(
        """
        from contextlib import nullcontext
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel
        from torch.utils.data import DataLoader

        def train(model, loader: DataLoader, every, budget):
            model, pending = DistributedDataParallel(model), 0
            for step, ids in enumerate(loader):
                last = step == len(loader) - 1
                with model.no_sync() if step % every and not last else nullcontext():
                    model(ids).backward()
                model.require_backward_grad_sync = step % every == 0
                model(ids).backward()
                with model.no_sync():
                    loss = model(ids)
                    print(loss) if loss.item() > 2 else None
                    loss.backward()
                tokens = ids.sum()
                dist.all_reduce(tokens)
                pending += tokens.item()
                with nullcontext() if pending > budget else model.no_sync():
                    model(ids).backward()
        """,
        "SPG305",
    )


def test_chains_of_modules_communicate_as_their_members() -> None:
    """A block with a ``SyncBatchNorm`` that a rank leaves out by its own data."""
    assert agree(
        """
        import torch.distributed as dist
        from torch import nn
        from torch.utils.data import DataLoader

        class Tracker(nn.Module):
            def __init__(self):
                super().__init__()
                norm = nn.Sequential(nn.SyncBatchNorm(4), nn.ReLU())
                self.refine = nn.Sequential(nn.Conv2d(4, 4, 1), norm)
                self.plain = nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU())
                self.previous = None

            def forward(self, x):
                if self.previous is not None:
                    x = self.plain(x)
                    x = self.refine(x)  # SPG305
                self.previous = x.detach()
                return x

        def main(loader: DataLoader):
            dist.init_process_group()
            net = Tracker().cuda()
            for x in loader:
                if x.sum() > 3:
                    net.previous = None
                net(x)
        """,
        "SPG305",
    )


def test_limit_from_the_card() -> None:
    """What a card is does not differ; what is allocated on it does."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def train(steps, x):
            device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
            limit = torch.cuda.get_device_properties(device).total_memory // 2
            for _ in range(steps):
                dist.all_reduce(x)
                peak = torch.tensor([torch.cuda.max_memory_allocated(device)], device=device)
                dist.all_reduce(peak, op=dist.ReduceOp.MAX)
                if peak.item() > limit:
                    break

        def alone(steps, x):
            device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
            limit = torch.cuda.get_device_properties(device).total_memory // 2
            for _ in range(steps):
                dist.all_reduce(x)
                if torch.cuda.max_memory_allocated(device) > limit:
                    break  # SPG102
        """,
        "SPG102",
        "SPG305",
    )


def test_numbers_read_before_the_reduction() -> None:
    """Who reduces a tensor expects the ranks to differ in it: what was read before is each rank's own."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def verdict(errors, steps):
            for _ in range(steps):
                flag = torch.tensor([len(errors)])
                failed = flag.item() > 0
                dist.all_reduce(flag)
                if failed:
                    break  # SPG102

        def number(errors, steps):
            for _ in range(steps):
                flag = torch.tensor(len(errors))
                bad = int(flag)
                dist.all_reduce(flag, op=dist.ReduceOp.MAX)
                if bad:
                    return  # SPG102

        def element(errors):
            flag = torch.tensor([len(errors)])
            failed = bool(flag[0])
            dist.all_reduce(flag)
            if not failed:
                dist.barrier()  # SPG305

        def loss(step, batches):
            for batch in batches:
                value = step(batch)
                high = value.item() > 10
                dist.all_reduce(value)
                if high:
                    continue  # SPG102
                dist.barrier()

        def reduced_first(errors, steps):
            for _ in range(steps):
                flag = torch.tensor([len(errors)])
                own = flag.item() > 0
                dist.all_reduce(flag)
                failed = flag.item() > 0
                if own:
                    print("here")
                if failed:
                    break

        def size(x, steps):
            for _ in range(steps):
                many = x.numel() > 4
                dist.all_reduce(x)
                if many:
                    dist.barrier()

        def checked(x):
            before = x.item()
            dist.all_reduce(x)
            assert x.item() == before * dist.get_world_size()
            dist.barrier()
        """,
        "SPG102",
        "SPG305",
        "SPG205",
    )


def test_norm_before_the_reduction_by_hand() -> None:
    """The norm of gradients that are not averaged yet is each rank's own."""
    assert agree(
        """
        import math
        import torch
        import torch.distributed as dist
        from torch.nn.utils import clip_grad_norm_

        def average(model):
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()

        def skipped(model, optimizer, x):
            model(x).mean().backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if not math.isfinite(norm):
                return None  # SPG102
            average(model)
            optimizer.step()

        def looped(model, optimizer, batches):
            for x in batches:
                loss = model(x).mean()
                loss.backward()
                if clip_grad_norm_(model.parameters(), 1.0).isnan():
                    continue  # SPG102
                average(model)
                optimizer.step()

        def averaged(model, optimizer, x):
            model(x).mean().backward()
            average(model)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if not math.isfinite(norm):
                return None
            dist.barrier()
            optimizer.step()

        def logged(model, optimizer, x):
            model(x).mean().backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if norm > 10:
                print(norm)
            average(model)
            optimizer.step()
        """,
        "SPG102",
        "SPG305",
    )
