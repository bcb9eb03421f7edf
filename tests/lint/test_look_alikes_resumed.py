"""Numbers of a resumed run that look rank-varying and are not: a checkpoint's step, what was agreed on, a length."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG104", "SPG401", "SPG402")


def test_entries_of_a_checkpoint_by_rank() -> None:
    """The step in each rank's own file is one step, whatever is computed from it; a number made of the rank is not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Trainer:
            def __init__(self, cfg, model):
                self.cfg, self.model, self.step, self.kept = cfg, model, 0, []
                self.device = torch.device("cuda", torch.cuda.current_device())

            def restore(self, folder):
                path = folder / "latest" / f"rank{dist.get_rank()}.pt"
                blob = torch.load(path, map_location=self.device, weights_only=False, mmap=True)
                self.model.load_state_dict(blob["model"])
                self.step = blob["state"]["step"]

            def save(self):
                dist.barrier()
                self.kept.append(self.step)
                while len(self.kept) > 3:
                    self.kept.pop(0)
                    dist.barrier()

            def fit(self, x):
                while self.step < self.cfg.steps:
                    dist.all_reduce(x)
                    self.step += 1
                    if self.step % self.cfg.every == 0:
                        self.save()
                if self.step % self.cfg.every:
                    self.save()

        def resumed(cfg, model, folder, x):
            trainer = Trainer(cfg, model)
            trainer.restore(folder)
            trainer.fit(x)

        class Counted(Trainer):
            def restore(self, folder):
                self.step = 5 * dist.get_rank()

            def fit(self, x):
                while self.step < self.cfg.steps:
                    dist.all_reduce(x)  # SPG402
                    self.step += 1

        def counted(cfg, model, folder, x):
            trainer = Counted(cfg, model)
            trainer.restore(folder)
            trainer.fit(x)
        """,
        *RULES,
    )


def test_agreed_number_beside_what_the_rank_read() -> None:
    """Of a pair that is returned, each part has its own reasons, however long the other one was computed."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def vote(ok):
            t = torch.tensor([int(ok)])
            dist.all_reduce(t, op=dist.ReduceOp.MIN)
            return bool(t.item())

        def newest(root, steps, rank):
            while steps:
                step = steps.pop(0)
                blob = None
                try:
                    blob = torch.load(root / f"step-{step}" / f"{rank}.pt", map_location="cpu")
                except Exception as error:
                    print(f"rank {rank}: step {step} cannot be read: {error}")
                if vote(blob is not None):
                    return step, blob
            return 0, None

        def run(root, steps, x):
            step, blob = newest(root, steps, dist.get_rank())
            while step < 10:
                dist.all_reduce(x)
                step += 1

        def own(root, steps, rank):
            while steps:
                step = steps.pop(0) + rank
                blob = None
                try:
                    blob = torch.load(root / f"step-{step}" / f"{rank}.pt", map_location="cpu")
                except Exception as error:
                    print(f"rank {rank}: step {step} cannot be read: {error}")
                if vote(blob is not None):
                    return step, blob
            return 0, None

        def run_own(root, steps, x):
            step, blob = own(root, steps, dist.get_rank())
            while step < 10:
                dist.all_reduce(x)  # SPG402
                step += 1
        """,
        *RULES,
    )


def test_as_many_batches_for_each_rank() -> None:
    """A sampler that is told the rank gives each of them as many; shares of the data, or batches by rank, do not."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.utils.data import DataLoader, DistributedSampler

        def rounds(loader, last, x):
            for i, batch in enumerate(loader):
                if i == last:
                    break
                dist.all_reduce(x)

        def by_place(data, stream, x, accumulation):
            sampler = DistributedSampler(data, dist.get_world_size(), dist.get_rank(), shuffle=True)
            loader = DataLoader(data, 4, sampler=sampler, drop_last=True)
            rounds(stream, len(loader) // accumulation, x)

        def of_sampler(data, stream, x):
            rounds(stream, len(DistributedSampler(data, dist.get_world_size(), rank=dist.get_rank())), x)

        def workers(data, stream, x):
            loader = DataLoader(data, 4, num_workers=2 if dist.get_rank() == 0 else 8)
            rounds(stream, len(loader), x)

        def shares(data, stream, x):
            loader = DataLoader(data[dist.get_rank() :: 3], 4)
            for i, batch in enumerate(stream):
                if i == len(loader):
                    break  # SPG102
                dist.all_reduce(x)

        def batches(data, x):
            for batch in DataLoader(data, batch_size=8 if dist.get_rank() == 0 else 4):
                dist.all_reduce(x)  # SPG401
        """,
        *RULES,
    )


def test_checkpoint_that_is_read_in_several_attempts() -> None:
    """What was loaded in some round, behind a vote, is a checkpoint; what a rank makes up that cannot read is not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def all_ok(ok):
            flag = torch.tensor([1 if ok else 0])
            dist.all_reduce(flag, op=dist.ReduceOp.MIN)
            return flag.item() == 1

        def read(path):
            result = None
            for attempt in range(5):
                if result is None:
                    try:
                        result = torch.load(path, map_location="cpu")
                    except (OSError, EOFError, RuntimeError) as error:
                        print(error)
                if all_ok(result is not None):
                    return result
            raise RuntimeError("some rank cannot read its file")

        def run(root, x, epochs):
            blob = read(f"{root}/rank{dist.get_rank()}.pt")
            for epoch in range(blob.get("epoch", 0), epochs):
                dist.all_reduce(x)

        def begun_anew(root, x, epochs):
            path = f"{root}/rank{dist.get_rank()}.pt"
            try:
                blob = torch.load(path, map_location="cpu")
            except OSError:
                blob = {"epoch": 0}
            for epoch in range(blob["epoch"], epochs):
                dist.all_reduce(x)  # SPG401

        def begun_at_zero(root, x, epochs):
            path = f"{root}/rank{dist.get_rank()}.pt"
            begin = 0
            try:
                begin = torch.load(path, map_location="cpu")["epoch"]
            except OSError:
                pass
            for epoch in range(begin, epochs):
                dist.all_reduce(x)  # SPG401
        """,
        *RULES,
    )
