"""SPG310: submodules that the input's content lets take part or not."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
        import random
        import torch
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP
"""


def test_branches_on_content() -> None:
    """Early returns, skipped experts, parts under a condition, dropped layers."""
    assert agree(
        HEAD
        + """
        class Returns(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk = nn.Linear(4, 4)
                self.head = nn.Linear(4, 1)

            def forward(self, x, keep):
                features = self.trunk(x)
                picked = features[keep]
                if len(picked) == 0:
                    return features.mean()  # SPG310
                return self.head(picked).sum()

        class Experts(nn.Module):
            def __init__(self, number):
                super().__init__()
                self.router = nn.Linear(4, number)
                self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(number)])

            def forward(self, x):
                chosen = self.router(x).argmax(-1)
                out = torch.zeros_like(x)
                for index, expert in enumerate(self.experts):
                    mask = chosen == index
                    if mask.any():
                        out[mask] = expert(x[mask])  # SPG310
                return out

        class Layers(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])

            def forward(self, x):
                for layer in self.layers:
                    if self.training and random.random() < 0.1:
                        continue  # SPG310
                    x = layer(x)
                return x

        class Either(nn.Module):
            def __init__(self):
                super().__init__()
                self.short = nn.Linear(4, 4)
                self.long = nn.Linear(4, 4)

            def forward(self, x, mask):
                if mask.sum() > 10:
                    return self.long(x)  # SPG310
                return self.short(x)

        def build(module):
            return DDP(module)
        """,
        "SPG310",
    )


def test_shared_conditions_are_silent() -> None:
    """Configuration, mode, presence of an argument, and a part that is used with a zero factor."""
    assert agree(
        HEAD
        + """
        class Model(nn.Module):
            def __init__(self, auxiliary):
                super().__init__()
                self.auxiliary = auxiliary
                self.trunk = nn.Linear(4, 4)
                self.head = nn.Linear(4, 1)
                self.extra = nn.Linear(4, 1)

            def forward(self, x, labels=None):
                features = self.trunk(x)
                if self.auxiliary and self.training:
                    features = features + self.extra(features)
                if labels is None:
                    return features
                if x.dim() == 3:
                    features = self.extra(features)
                picked = features[labels]
                if picked.numel() == 0:
                    return features.mean() + 0 * sum(p.sum() for p in self.head.parameters())
                return self.head(picked).sum()

        def build(module):
            return DDP(module)
        """,
        "SPG310",
    )


def test_told_wrappers_are_silent() -> None:
    """DDP may be told to look for unused parameters; without a wrapper nothing is at stake."""
    module = """
        class Returns(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(4, 1)

            def forward(self, x, keep):
                if x[keep].numel() == 0:
                    return x.mean()
                return self.head(x[keep]).sum()
"""
    told = "\n        def build(module):\n            return DDP(module, find_unused_parameters=True)\n"
    assert agree(HEAD + module + told, "SPG310")
    assert agree(HEAD + module, "SPG310")


def test_nothing_in_the_input() -> None:
    """Rows and items that a rank may have none of: asked in forward itself, and in a method that it calls."""
    assert agree(
        HEAD
        + """
        class Expert(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(4, 8)

            def forward(self, tokens):
                if tokens.shape[0] == 0:
                    return tokens  # SPG310
                return self.up(tokens)

        class Boxes(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk = nn.Linear(4, 4)
                self.label = nn.Embedding(5, 4)

            def noisy(self, targets):
                counts = [len(t) for t in targets]
                if max(counts) == 0:
                    return None  # SPG310
                return self.label(torch.cat(targets))

            def forward(self, x, targets):
                extra = self.noisy(targets)
                out = self.trunk(x)
                return out if extra is None else out + extra.sum()

        class Masks(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk = nn.Linear(4, 4)
                self.mask = nn.Linear(4, 1)

            def forward(self, x, targets):
                out = self.trunk(x)
                if any(len(t) > 0 for t in targets):
                    out = out + self.mask(out)  # SPG310
                return out

        def build(module):
            return DDP(module)
        """,
        "SPG310",
    )


def test_something_for_every_rank() -> None:
    """A part that runs anyway, helpers of inference, sizes of the configuration, and lists that no argument fills."""
    assert agree(
        HEAD
        + """
        class Model(nn.Module):
            def __init__(self, extras):
                super().__init__()
                self.trunk = nn.Linear(4, 4)
                self.label = nn.Embedding(5, 4)
                self.extras = nn.ModuleList(extras)

            def noisy(self, targets):
                counts = [len(t) for t in targets]
                if max(counts) == 0:
                    return self.label(torch.zeros(1, dtype=torch.long)) * 0
                return self.label(torch.cat(targets))

            def predict(self, x):
                if x.shape[0] == 0:
                    return x
                return self.label(x)

            def shaped(self, x):
                if x.shape[1] == 3:
                    x = x + self.extras[0](x)
                return x

            def forward(self, x, targets=None):
                if targets is None:
                    return self.predict(x)
                if len(self.extras) == 0:
                    return self.trunk(x)
                if x.shape[0] == 0:
                    x = x.new_zeros(1, 4)
                return self.shaped(self.trunk(x)) + self.noisy(targets)

        def build(module):
            return DDP(module)
        """,
        "SPG310",
    )


def test_gradients_that_one_rank_lacks() -> None:
    """A reduction of each gradient that there is, beside a module that is left out where a rank has no rows."""
    for asked, mark in (
        ("tokens.shape[0] == 0", "  # SPG305"),
        ("len(tokens) == 0", "  # SPG305"),
        ("not tokens.size(0)", "  # SPG305"),
        ("tokens.shape[1] == 3", ""),
        ("len(self.blocks) == 0", ""),
    ):
        assert agree(
            f"""
            import torch.distributed as dist
            from torch import nn

            class Expert(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.blocks = nn.Linear(4, 4)

                def forward(self, tokens):
                    if {asked}:
                        return tokens
                    return self.blocks(tokens)

            def finish(module):
                for p in module.parameters():
                    if p.grad is not None:
                        dist.all_reduce(p.grad){mark}
            """,
            "SPG305",
        )


OPTIONAL = """
        import torch
        from torch import nn
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        from torch.distributed.fsdp import fully_shard
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.text = nn.Linear(8, 8)
                self.tower = nn.Linear(8, 8)

            def forward(self, ids, images=None):
                x = self.text(ids)
                if images is not None:
                    x = x + self.tower(images)%s
                return x

        class Leaving(nn.Module):
            def __init__(self):
                super().__init__()
                self.text = nn.Linear(8, 8)
                self.tower = nn.Linear(8, 8)

            def forward(self, ids, images):
                x = self.text(ids)
                if images is None:
                    return x%s
                return x + self.tower(images)

        class Always(nn.Module):
            def __init__(self):
                super().__init__()
                self.text = nn.Linear(8, 8)
                self.tower = nn.Linear(8, 8)

            def forward(self, ids, images=None):
                x = self.text(ids)
                if images is None:
                    return x + 0.0 * self.tower(x.new_zeros(1, 8)).sum()
                return x + self.tower(images)
"""


def test_arguments_that_a_batch_lacks() -> None:
    """A value or None by a question to the batch, a key that may be missing, in place or by a name."""
    reported = ("  # SPG310", "  # SPG310")
    for use in (
        """
        def train(loader):
            model = DDP(Both())
            for batch in loader:
                images = batch["images"] if batch.get("images") is not None else None
                model(batch["ids"], images).sum().backward()
        """,
        """
        def train(loader, steps):
            model = FSDP(Both())
            rows = iter(loader)
            for step in range(steps):
                batch = next(rows)
                model(batch["ids"], images=batch.get("images")).sum().backward()
        """,
        """
        def train(loader):
            model = DDP(Leaving())
            for batch in loader:
                images = None
                if "images" in batch:
                    images = batch["images"].cuda()
                model(batch["ids"], images).sum().backward()
                model(batch["ids"], batch.get("images", None)).sum().backward()
        """,
        """
        class Trainer:
            def __init__(self):
                self.model = Both()
                fully_shard(self.model)

            def epoch(self, loader):
                for ids, images in loader:
                    self.model(ids, images if len(images) else None).sum().backward()
        """,
    ):
        assert agree(OPTIONAL % reported + use, "SPG310")


def test_submodules_of_helper_methods() -> None:
    """A method that uses a submodule stands for it, in the arm of a branch and beside it."""
    assert agree(
        """
        import torch
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk = nn.Linear(8, 8)
                self.head = nn.Linear(8, 1)
                self.side = nn.Linear(8, 1)

            def scored(self, x):
                return self.head(x).sum()

            def beside(self, x):
                return self.side(x).sum()

            def forward(self, x, keep):
                out = self.trunk(x) + self.beside(x)
                picked = out[keep]
                if picked.numel() > 0:
                    out = out + self.scored(picked)  # SPG310
                    out = out + self.beside(picked)
                return out

        def build():
            return DDP(Net())
        """,
        "SPG310",
    )


def test_arguments_that_settings_leave_out() -> None:
    """Given or left out by a setting, given in each batch, or for a model that none wraps."""
    for use in (
        """
        def train(loader, config):
            model = DDP(Both())
            for batch in loader:
                images = batch["images"] if config.images else None
                model(batch["ids"], images).sum().backward()
        """,
        """
        def train(loader, images=None):
            model = DDP(Both())
            for batch in loader:
                model(batch["ids"], images).sum().backward()
        """,
        """
        def train(loader):
            model = DDP(Both())
            for batch in loader:
                model(batch["ids"], batch["images"]).sum().backward()
        """,
        """
        def evaluate(loader):
            model = Both()
            for batch in loader:
                print(model(batch["ids"], batch.get("images")))
        """,
    ):
        assert agree(OPTIONAL % ("", "") + use, "SPG310")


def test_a_generator_of_the_module_alone() -> None:
    """Numbers from a generator that all ranks have seeded alike; one seeded by the rank, or none, parts them."""
    for seeding, draw, mark in (
        ("self.coin.manual_seed(1234)", "torch.rand((), generator=self.coin).item()", ""),
        ("self.coin.manual_seed(1234)", "torch.rand(1, generator=self.coin)", ""),
        ("self.coin.manual_seed(7 + dist.get_rank())", "torch.rand((), generator=self.coin)", "  # SPG310"),
        ("self.coin.manual_seed(1234)", "torch.rand(()).item()", "  # SPG310"),
        ("self.coin.manual_seed(1234)", "torch.rand((), generator=None)", "  # SPG310"),
    ):
        assert agree(
            f"""
            import torch
            import torch.distributed as dist
            from torch import nn
            from torch.nn.parallel import DistributedDataParallel as DDP

            class Encoder(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
                    self.coin = torch.Generator()
                    {seeding}

                def forward(self, x):
                    for layer in self.layers:
                        if {draw} < 0.1:
                            continue{mark}
                        x = layer(x)
                    return x

            def build(module):
                return DDP(module)
            """,
            "SPG310",
        )


def test_modules_of_another_package() -> None:
    """A class of another package that is called as modules are; one that is called otherwise is no module."""
    for name, mark in (("VisionTower", "  # SPG310"), ("ImageEncoder", "  # SPG310"), ("PixelReader", "")):
        assert agree(
            f"""
            from torch import nn
            from torch.distributed.fsdp import fully_shard
            from elsewhere.parts import {name}

            class Both(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.vision = {name}(8)
                    self.head = nn.Linear(8, 8)

                def forward(self, ids, pixels=None):
                    x = ids
                    if pixels is not None:
                        x = x + self.vision(pixels){mark}
                    return self.head(x)

            def train(loader):
                model = fully_shard(Both())
                for batch in loader:
                    pixels = batch["pixels"].cuda() if batch["pixels"] is not None else None
                    model(batch["ids"], pixels)
            """,
            "SPG310",
        )
