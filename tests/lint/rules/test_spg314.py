"""SPG314: shuffling samplers that stay in the first epoch."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm
"""


def test_one_function() -> None:
    """Sampler and loops in one function, with what stands around a loader."""
    assert agree(
        HEAD
        + """
def plain(data, model, optimizer, epochs):
    model = DDP(model)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(epochs):
        for batch in loader:  # SPG314
            model(batch).sum().backward()
            optimizer.step()

def chosen(data, model, args):
    model = DDP(model)
    sampler = torch.utils.data.DistributedSampler(data, shuffle=True) if args.distributed else None
    loader = torch.utils.data.DataLoader(data, sampler=sampler, shuffle=sampler is None)
    steps = 0
    while steps < args.steps:
        for index, batch in enumerate(tqdm(loader)):  # SPG314
            model(batch).sum().backward()
            steps += 1
""",
        "SPG314",
    )


def test_through_functions_and_classes() -> None:
    """The loader is returned, passed, and kept in an attribute."""
    assert agree(
        HEAD
        + """
def make(data, rest):
    train = DataLoader(data, sampler=DistributedSampler(data))
    return train, DataLoader(rest)

def step(model, batch):
    model(batch).sum().backward()

def one_epoch(model, batches):
    for batch in batches:  # SPG314
        step(model, batch)

def main(data, rest, model):
    model = DDP(model)
    train_loader, test_loader = make(data, rest)
    for epoch in range(4):
        one_epoch(model, train_loader)
""",
        "SPG314",
    )
    assert agree(
        HEAD
        + """
class Trainer:
    def __init__(self, model, batches):
        self.model = DDP(model)
        self.batches = batches

    def epoch(self):
        for batch in self.batches:  # SPG314
            self.model(batch).sum().backward()

    def train(self, epochs):
        for _ in range(epochs):
            self.epoch()

def main(data, model):
    Trainer(model, DataLoader(data, sampler=DistributedSampler(data, shuffle=True))).train(3)
""",
        "SPG314",
    )


def test_no_other_epoch_or_no_shuffling() -> None:
    """One pass, an order that is asked for, an evaluation, a new sampler for each round."""
    assert agree(
        HEAD
        + """
def one_pass(data, model):
    model = DDP(model)
    loader = DataLoader(data, sampler=DistributedSampler(data))
    for batch in loader:
        model(batch).sum().backward()

def ordered(data, model, epochs):
    model = DDP(model)
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    for epoch in range(epochs):
        for batch in loader:
            model(batch).sum().backward()

def evaluated(data, other, model, epochs):
    model = DDP(model)
    held_out = DataLoader(data, sampler=DistributedSampler(data))
    for epoch in range(epochs):
        for batch in other:
            model(batch).sum().backward()
        for batch in held_out:
            print(model(batch))

def folds(parts, model):
    model = DDP(model)
    for part in parts:
        fold = DataLoader(part, sampler=DistributedSampler(part))
        for batch in fold:
            model(batch).sum().backward()
""",
        "SPG314",
    )


def test_epoch_is_set() -> None:
    """The epoch is set, by the call, by assignment, or by a framework."""
    loops = """
def train(data, model, epochs):
    model = DDP(model)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(epochs):
        {}
        for batch in loader:
            model(batch).sum().backward()
"""
    for line in ("sampler.set_epoch(epoch)", "loader.sampler.set_epoch(epoch)", "sampler.epoch = epoch"):
        assert agree(HEAD + loops.format(line), "SPG314")
    assert agree(HEAD + "import accelerate\n" + loops.format("pass"), "SPG314")


def test_miss_in_two_files() -> None:
    """Known miss: the loader comes from elsewhere."""
    assert agree(
        HEAD
        + """
from loaders import make

def train(model, data, epochs):
    model = DDP(model)
    loader = make(data, DistributedSampler(data))
    for epoch in range(epochs):
        for batch in loader:
            model(batch).sum().backward()
""",
        "SPG314",
    )
