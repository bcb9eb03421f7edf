"""Containers that hold what this rank has met: filled by hooks, by its data, by the gradients that there are."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG102", "SPG305", "SPG401")


def test_filled_by_a_hook() -> None:
    """A closure, a method or a lambda that is registered fills the field, and its emptiness decides."""
    assert agree(
        """
        from collections import defaultdict
        from dataclasses import dataclass, field

        import torch.distributed as dist

        @dataclass
        class ByClosure:
            path: str
            seen: dict = field(default_factory=dict)

            def watch(self, stage):
                for name, module in stage.named_modules():
                    module.register_forward_hook(self.recorder(name))

            def recorder(self, name):
                def record(module, inputs, output):
                    self.seen[name] = output.mean().item()

                return record

            def collect(self):
                if not self.seen:
                    return {}  # SPG102
                parts = [None] * dist.get_world_size()
                dist.all_gather_object(parts, self.seen)
                self.seen = {}
                return parts

        class ByMethod:
            def __init__(self, module):
                self.norms = defaultdict(list)
                module.register_full_backward_hook(self.on_backward)

            def on_backward(self, module, grad_in, grad_out):
                self.norms[module].append(grad_out[0].norm())

            def collect(self, total):
                if len(self.norms) == 0:
                    return None  # SPG102
                dist.all_reduce(total)
                self.norms.clear()
                return total

        class ByLambda:
            def __init__(self, module):
                self.sizes = []
                module.register_forward_hook(lambda m, i, o: self.add(o))
                module.register_forward_pre_hook(lambda m, i: self.sizes.append(len(i)))

            def collect(self, total):
                if self.sizes:
                    dist.all_reduce(total)  # SPG305
                self.sizes = []

        class Plain:
            def __init__(self):
                self.values = {}

            def record(self, name, value):
                self.values[name] = value

            def collect(self):
                if not self.values:
                    return None
                parts = [None] * dist.get_world_size()
                dist.all_gather_object(parts, self.values)
                self.values = {}
                return parts
        """,
        *RULES,
    )


def test_filled_by_own_data() -> None:
    """Keys and items by the batches of this rank: loops over them, and metrics that are reduced one by one."""
    assert agree(
        """
        from collections import defaultdict

        import lightning.pytorch as pl
        import torch
        import torch.distributed as dist

        class ByClass(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.hits = {}
                self.rows = defaultdict(list)
                self.losses = []

            def on_validation_epoch_start(self):
                self.hits = {}

            def validation_step(self, batch, _):
                x, y = batch
                right = self(x).argmax(1) == y
                for label in y.unique().tolist():
                    self.hits.setdefault(label, []).append(right[y == label].float())
                    self.rows[label].append(1)
                self.losses.append(right)

            def on_validation_epoch_end(self):
                scores = {f"acc_{c}": torch.cat(r).mean() for c, r in self.hits.items()}
                self.log_dict(scores, sync_dist=True)  # SPG401
                for label, rows in self.rows.items():
                    self.log(f"rows_{label}", len(rows), sync_dist=True)  # SPG401
                self.log_dict(scores)
                self.log_dict({"a": 1.0, "b": 2.0}, sync_dist=True)
                self.log("loss", torch.stack(self.losses).mean(), sync_dist=True)
                everything = {}
                for c in range(10):
                    everything[f"acc_{c}"] = torch.cat(self.hits[c]).mean() if c in self.hits else torch.zeros(())
                self.log_dict(everything, sync_dist=True)

        class Scores:
            def __init__(self):
                self.found = {}

            def update(self, loader):
                for batch in loader:
                    for word in batch["text"].unique().tolist():
                        self.found[word] = self.found.get(word, 0) + 1

            def reduce(self):
                for count in self.found.values():
                    dist.all_reduce(count)  # SPG401

        def local(loader):
            sums = {}
            for batch in loader:
                for label in batch["label"].unique().tolist():
                    sums[label] = sums.get(label, 0) + 1
            for label, count in sums.items():
                dist.all_reduce(count)  # SPG401

        def fixed(loader, names):
            sums = {name: 0 for name in names}
            for batch in loader:
                for name in names:
                    sums[name] += batch[name].sum()
            for total in sums.values():
                dist.all_reduce(total)
        """,
        *RULES,
    )


def test_what_a_batch_holds_decides() -> None:
    """Sets of labels, keys by task, metrics of some batches, kept rows; and what all ranks have alike."""
    assert agree(
        """
        import random
        import torch
        import torch.distributed as dist
        import lightning.pytorch as pl
        from collections import Counter, defaultdict
        from torch.nn.parallel import DistributedDataParallel as DDP

        def tasks(loader):
            for batch in loader:
                for task in set(batch["task"].tolist()):
                    dist.all_reduce(batch["loss"])  # SPG401

        def tasks2(loader):
            for batch in loader:
                losses = {}
                for task, loss in zip(batch["task"].tolist(), batch["loss"]):
                    losses.setdefault(task, []).append(loss)
                for task, values in losses.items():
                    dist.all_reduce(torch.stack(values).mean())  # SPG401

        def present(loader, model):
            for batch in loader:
                metrics = {"loss": model(batch)}
                if batch["mask"].any():
                    metrics["aux"] = model.aux(batch)
                for name, value in metrics.items():
                    dist.all_reduce(value)  # SPG401

        class L(pl.LightningModule):
            def training_step(self, batch, idx):
                out = {"loss": self(batch)}
                if batch["mask"].sum() > 0:
                    out["aux"] = self.aux(batch)
                self.log_dict(out, sync_dist=True)  # SPG401
                return out["loss"]

            def validation_step(self, batch, idx):
                for name in batch["names"].unique().tolist():
                    self.log(f"acc/{name}", 1.0, sync_dist=True)  # SPG401
                if batch["mask"].any():
                    self.log("aux", 1.0, sync_dist=True)  # SPG305

            def test_step(self, batch, idx):
                self.log(f"acc/{batch['name'][0]}", 1.0, sync_dist=True)  # SPG107

        class M:
            def __init__(self):
                self.records = []
                self.counts = Counter()
            def update(self, batch):
                bad = batch["x"].isnan().any()
                if bad:
                    self.records.append(batch["id"])
                for c in batch["label"].tolist():
                    self.counts[c] += 1
            def flush(self):
                if len(self.records) == 0:
                    return  # SPG102
                out = [None] * dist.get_world_size()
                dist.all_gather_object(out, self.records)
                self.records.clear()
            def totals(self):
                for c in sorted(self.counts):
                    dist.all_reduce(torch.tensor(self.counts[c]))

        def seen(loader, model):
            classes = set()
            for batch in loader:
                classes.update(batch["label"].tolist())
            for c in sorted(classes):
                dist.all_reduce(torch.zeros(()))  # SPG401

        def firsts(loader):
            rows = []
            for batch in loader:
                if batch["keep"].item():
                    rows.append(batch)
            if not rows:
                return  # SPG102
            dist.barrier()

        def chunks(loader, model):
            model = DDP(model)
            for batch in loader:
                n = batch["len"].max().item()
                for start in range(0, n, 512):  # SPG401
                    model(batch["x"][start:start + 512])

        def grad_norms(model):
            norms = {}
            for name, p in model.named_parameters():
                norms[name] = p.grad.norm()
            for n in norms.values():
                dist.all_reduce(n)

        def fixed_classes(loader, num):
            counts = torch.zeros(num)
            for batch in loader:
                for c in batch["label"].tolist():
                    counts[c] += 1
            for c in range(num):
                dist.all_reduce(counts[c])

        def queue(loader):
            q = []
            for batch in loader:
                q.append(batch)
                if len(q) == 4:
                    dist.all_reduce(q[0])
                    q.clear()
        """,
        *RULES,
        "SPG107",
    )


FORWARD = """
        import random
        from collections import defaultdict

        import torch
        import torch.distributed as dist
        from torch import nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk, self.aux = nn.Linear(1, 1), nn.Linear(1, 1)

            def forward(self, x, rated):
                hidden = self.trunk(x)
                {body}
"""
REDUCE = """
        def one_by_one(model):
            for p in model.parameters():
                if p.grad is None:
                    continue{exit}
                dist.all_reduce(p.grad)

        def where_there(model):
            for p in model.parameters():
                if p.grad is not None:
                    dist.all_reduce(p.grad){branch}

        def buckets(model):
            kept = {{}}
            for p in model.parameters():
                if p.grad is None:
                    continue
                kept.setdefault(p.grad.dtype, []).append(p.grad)
            for grads in kept.values():
                dist.all_reduce(torch.cat(grads)){trip}

        def groups(model):
            kept = defaultdict(list)
            for p in model.parameters():
                if p.grad is not None:
                    kept[p.grad.dtype].append(p.grad)
            for dtype, grads in kept.items():
                dist.all_reduce(torch.cat(grads)){trip}

        def listed(model):
            for grad in [p.grad for p in model.parameters() if p.grad is not None]:
                dist.all_reduce(grad){trip}

        def filled(model):
            kept = {{}}
            for p in model.parameters():
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                kept.setdefault(p.grad.dtype, []).append(p.grad)
            for grads in kept.values():
                dist.all_reduce(torch.cat(grads))
"""
FOUND = REDUCE.format(exit="  # SPG102", branch="  # SPG305", trip="  # SPG401")
SILENT = REDUCE.format(exit="", branch="", trip="")


def test_gradients_that_a_batch_leaves_out() -> None:
    """A forward pass that calls a module by what is in the batch, or by chance, leaves gradients out on one rank."""
    for body in (
        "return self.aux(hidden[rated]) if rated.any() else None",
        "return hidden if random.random() < 0.1 else self.aux(hidden)",
        "if rated.sum() == 0:\n                    return hidden\n                return self.aux(hidden)",
    ):
        assert agree(FORWARD.format(body=body) + FOUND, *RULES)


def test_gradients_that_all_ranks_leave_out() -> None:
    """Every module takes part, or all ranks leave it out alike: by a setting, or by the mode."""
    for body in (
        "return self.aux(hidden)",
        "return self.aux(hidden) if self.training else hidden",
        "return self.aux(hidden) if rated is not None else hidden",
        "return self.aux(hidden) if rated.any() else self.aux(hidden) * 0",
    ):
        assert agree(FORWARD.format(body=body) + SILENT, *RULES)
