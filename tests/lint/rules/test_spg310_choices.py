"""SPG310: parts chosen by a number or an answer out of the input, and parts that the caller has built."""

from __future__ import annotations

from tests.lint.rules.marked import agree

NET = """
            import torch
            import torch.distributed as dist
            from torch import nn
            from torch.nn.parallel import DistributedDataParallel as DDP

            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.trunk = nn.Linear(8, 8)
                    self.bright = nn.Linear(8, 2)
                    self.dark = nn.Linear(8, 2)
                    self.heads = nn.ModuleList([nn.Linear(8, 2), nn.Linear(8, 2)])

                def forward(self, x, kind=0):
                    f = self.trunk(x)
{body}

            def build():
                return DDP(Net())
"""


def _in_forward(body: str) -> str:
    return NET.format(body="\n".join(f"                    {line}" for line in body.splitlines()))


def test_a_head_chosen_by_the_input() -> None:
    """By a mean, by a name for the answer, in an expression, as index, in a loop over what was found."""
    for body in (
        "if x.mean() > 0.5:\n    return self.bright(f)  # SPG310\nreturn self.dark(f)",
        "if torch.std(x) > 0.5:\n    return self.bright(f)  # SPG310\nreturn self.dark(f)",
        "level = x.mean().item()\nif level > 0.5:\n    return self.bright(f)  # SPG310\nreturn self.dark(f)",
        "found = (x > 3).any()\nif found:\n    f = f + self.bright(f)  # SPG310\nreturn self.dark(f)",
        "return self.bright(f) if x.norm() > 1 else self.dark(f)  # SPG310",
        "head = self.bright if bool(x.max() > 0) else self.dark  # SPG310\nreturn head(f)",
        "return self.heads[int(x.mean() > 0.5)](f)  # SPG310",
        "which = f.argmax().item()\nreturn self.heads[which](f)  # SPG310",
    ):
        assert agree(_in_forward(body), "SPG310")


def test_a_choice_that_leaves_nothing_out() -> None:
    """Both run, a weight of the two, agreed numbers, sizes and settings, other attributes of a part."""
    for body in (
        "light = (x.mean() > 0.5).float()\nreturn light * self.bright(f) + (1 - light) * self.dark(f)",
        "a, b = self.bright(f), self.dark(f)\nreturn a if x.mean() > 0.5 else b",
        "if x.mean() > 0.5:\n    f = f * 2\nreturn self.dark(f) + self.bright(f)",
        "n = (x > 0).sum()\ndist.all_reduce(n)\nif n.item() > 3:\n    return self.bright(f)\nreturn self.dark(f)",
        "wide = x.shape[1] > 4\nif wide:\n    return self.bright(f)\nreturn self.dark(f)",
        "return self.bright(f) if self.training else self.dark(f)",
        "return self.heads[kind](f)",
        "return f + self.bright.weight[int(x.argmax())]",
        "out = x / x.max()\nif out is None:\n    return self.bright(f)\nreturn self.dark(f)",
    ):
        assert agree(_in_forward(body), "SPG310")


def test_an_argument_that_is_the_condition() -> None:
    """A flag that comes at other steps on each rank, and one that comes at the same."""
    for steps, test, mark in (
        ("4 + dist.get_rank()", "first", "  # SPG310"),
        ("4 + dist.get_rank()", "not first", "  # SPG310"),
        ("4", "first", ""),
        ("4 + dist.get_world_size()", "first", ""),
    ):
        assert agree(
            f"""
            import torch
            import torch.distributed as dist
            from torch import nn
            from torch.nn.parallel import DistributedDataParallel as DDP

            class Clip(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.look = nn.Linear(8, 8)
                    self.fuse = nn.Linear(8, 8)

                def forward(self, x, first):
                    out = self.look(x)
                    if {test}:
                        out = out + self.fuse(x){mark}
                    return out

            def frames(length):
                for i in range(24):
                    yield torch.rand(2, 8), i % length == 0

            def train():
                net = DDP(Clip())
                for x, first in frames({steps}):
                    net(x, first).sum().backward()
            """,
            "SPG310",
        )


COLLATED = """
            import torch
            from torch import nn
            from torch.nn.parallel import DistributedDataParallel as DDP
            from torch.utils.data import DataLoader

            class Both(nn.Module):
                def __init__(self, {parameters}, loss_fn):
                    super().__init__()
                    self.tower, self.lm = tower, lm
                    self.loss_fn = loss_fn

                def forward(self, ids, pixels=None, labels=None):
                    x = self.lm(ids)
                    if labels is not None:
                        x = self.loss_fn(x, labels)
                    if pixels is not None:
                        x = x + self.tower(pixels){mark}
                    return x

            {collate}

            def train(net, rows):
                model = DDP(net)
                for batch in DataLoader(rows, collate_fn={handed}):
                    {call}
"""
BY_ROWS = """def together(rows):
                found = [r["pixels"] for r in rows if r["pixels"] is not None]
                labels = [r["labels"] for r in rows if r["labels"] is not None]
                return {
                    "ids": torch.stack([r["ids"] for r in rows]),
                    "pixels": torch.stack(found) if found else None,
                    "labels": torch.stack(labels) if labels else None,
                }
"""
BY_KEY = """class Collator:
                def __init__(self, size):
                    self.size = size

                def __call__(self, rows):
                    batch = {"ids": torch.stack([r["ids"] for r in rows])}
                    if any("pixels" in r for r in rows):
                        batch["pixels"] = torch.stack([r["pixels"] for r in rows])
                    return batch
"""
BY_SETTING = """class Collator:
                def __init__(self, pictures):
                    self.pictures = pictures

                def __call__(self, rows):
                    batch = {"ids": torch.stack([r["ids"] for r in rows])}
                    if self.pictures:
                        batch["pixels"] = torch.stack([r["pixels"] for r in rows])
                    return batch
"""


def test_parts_that_the_caller_has_built() -> None:
    """A tower that `__init__` is given, where the collating function leaves pictures out; a loss is no part."""
    for parameters, collate, handed, call, mark in (
        ("tower, lm", BY_ROWS, "together", "model(**batch).backward()", "  # SPG310"),
        ("tower: nn.Module, lm: nn.Module", BY_ROWS, "together", "model(**batch).backward()", "  # SPG310"),
        ("tower, lm", BY_KEY, "Collator(3)", "model(**batch).backward()", "  # SPG310"),
        ("tower, lm", BY_ROWS, "together", "model(batch['ids'], batch['pixels']).backward()", "  # SPG310"),
        ("tower, lm", BY_ROWS, "together", "model(batch['ids'], labels=batch['labels']).backward()", ""),
        ("tower, lm", BY_SETTING, "Collator(True)", "model(**batch).backward()", ""),
        ("tower: str, lm", BY_ROWS, "together", "model(**batch).backward()", ""),
    ):
        assert agree(
            COLLATED.format(parameters=parameters, collate=collate, handed=handed, call=call, mark=mark),
            "SPG310",
        )
