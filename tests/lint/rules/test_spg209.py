"""SPG209: names that some ranks do not have."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HEAD = """
import os

import torch.distributed as dist
from accelerate import Accelerator
"""


def test_used_by_all() -> None:
    """A flag, a writer, a function and an import of one rank, used by all; the first use of each is reported."""
    assert agree(
        HEAD
        + """
def flag(steps, config, total):
    rank = dist.get_rank()
    if rank == 0:
        os.makedirs("out")
        use_tracker = config.get("project")
    for step in steps:
        dist.all_reduce(total)
        if use_tracker:  # SPG209
            dist.all_reduce(total)
        print(use_tracker)

def other_arm(steps, total):
    if dist.get_rank() != 0:
        pass
    else:
        writer = open("log", "w")
    dist.all_reduce(total)
    writer.write(str(total))  # SPG209

def nested(config, total):
    accelerator = Accelerator()
    if accelerator.is_main_process:
        if config.track:
            from wandb import init

            run = init()
        else:
            run = None
    total = accelerator.reduce(total)
    if run is not None:  # SPG209
        run.log(total)

def defined(total):
    if dist.get_rank() == 0:
        def show(what):
            print(what)
    dist.all_reduce(total)
    show(total)  # SPG209
""",
        "SPG209",
    )


def test_at_module_level_and_through_a_call() -> None:
    """A script's own statements, and a function that is told the rank."""
    assert agree(
        HEAD
        + """
def told(rank, total):
    if rank == 0:
        name = "main"
    dist.all_reduce(total)
    print(name)  # SPG209

told(dist.get_rank(), None)
""",
        "SPG209",
    )
    assert agree(
        HEAD
        + """
rank = int(os.environ["RANK"])
dist.init_process_group("nccl")
if rank == 0:
    started = 5
dist.barrier()
print(started)  # SPG209
""",
        "SPG209",
    )


def test_only_where_it_is_bound() -> None:
    """Uses under the same condition, behind the other ranks' exit, or of a name that all have."""
    assert agree(
        HEAD
        + """
def same(steps, total):
    rank = dist.get_rank()
    main = rank == 0
    if main:
        writer = open("log", "w")
    for step in steps:
        dist.all_reduce(total)
        if rank == 0:
            writer.write("x")
        if step and main:
            writer.write("y")
        main and writer.write("z")
        text = writer.name if not rank else ""
    return text

def left(total):
    if dist.get_rank() == 0:
        best = 3
    dist.all_reduce(total)
    if dist.get_rank() != 0:
        return None
    return best

def before(total):
    tracker = None
    if dist.get_rank() == 0:
        tracker = open("log", "w")
    dist.all_reduce(total)
    if tracker is not None:
        tracker.write("x")

def both(total):
    if dist.get_rank() == 0:
        box = [1]
    elif dist.get_rank() == 1:
        box = [2]
    else:
        box = [None]
    dist.broadcast_object_list(box, src=0)
    return box

def comprehended(total, outputs):
    if dist.get_rank() == 0:
        output = outputs[0]
        print(output)
    dist.all_reduce(total)
    return [output for output in outputs], sorted(outputs, key=lambda output: output.x)

def raised(total):
    if dist.get_rank() == 0:
        value = 1
    else:
        raise RuntimeError
    return value

def later(rounds, total):
    for step in range(rounds):
        if dist.get_rank() == 0:
            seen = 1
        dist.all_reduce(total)
        seen = 2
        print(seen)
""",
        "SPG209",
    )


def test_asked_for() -> None:
    """Code that asks whether the name is there."""
    assert agree(
        HEAD
        + """
def listed(total):
    if dist.get_rank() == 0:
        run = open("log", "w")
    dist.all_reduce(total)
    if "run" in locals():
        run.write("x")

def tried(total):
    if dist.get_rank() == 0:
        run = open("log", "w")
    dist.all_reduce(total)
    try:
        run.write("x")
    except NameError:
        pass
""",
        "SPG209",
    )


def test_attributes_of_some_ranks() -> None:
    """An attribute that the constructor gives on one rank, read by all in another method."""
    assert agree(
        HEAD
        + """
class Keeper:
    def __init__(self, rank):
        self.rank = rank
        if rank == 0:
            self.run = open("log", "w")

    def log(self, total):
        dist.all_reduce(total)
        self.run.write("x")  # SPG209

class Guarded:
    def __init__(self):
        self.main = dist.get_rank() == 0
        if self.main:
            self.run = open("log", "w")

    def log(self, total):
        dist.all_reduce(total)
        if self.main:
            self.run.write("x")

class Asking(Guarded):
    def __init__(self):
        if dist.get_rank() == 0:
            self.tracker = open("log", "w")

    def log(self, total):
        dist.all_reduce(total)
        if hasattr(self, "tracker"):
            self.tracker.write("x")

class Given:
    writer = None

    def __init__(self):
        if dist.get_rank() == 0:
            self.writer = open("log", "w")

    def log(self, total):
        dist.all_reduce(total)
        if self.writer:
            self.writer.write("x")

def main(total):
    Keeper(dist.get_rank()).log(total)

def guarded(total):
    Guarded().log(total)
    Asking().log(total)
    Given().log(total)
""",
        "SPG209",
    )


def test_miss_nested_use_and_attribute() -> None:
    """Known misses: a use in a nested function, and an attribute that a class of a library may have."""
    assert agree(
        HEAD
        + """
import pytorch_lightning as pl

class Keeper(pl.Callback):
    def __init__(self):
        if dist.get_rank() == 0:
            self.run = open("log", "w")

    def log(self, total):
        dist.all_reduce(total)
        self.run.write("x")

def nested(total):
    if dist.get_rank() == 0:
        run = open("log", "w")

    def log():
        run.write("x")

    dist.all_reduce(total)
    log()
""",
        "SPG209",
    )


def test_bound_again_in_each_round() -> None:
    """The arm of a loop's round binds the name before it uses it; behind the arm it is missing on the other ranks."""
    assert agree(
        """
        import torch.distributed as dist

        def place_of(spec):
            return spec == dist.get_rank()

        def export(specs, x):
            for spec in specs:
                if place_of(spec):
                    base = x.clone()
                    print(base)
                dist.all_reduce(x)

        def behind(specs, x):
            for spec in specs:
                if dist.get_rank() == 0:
                    base = x.clone()
                print(base)  # SPG209
                dist.all_reduce(x)
        """,
        "SPG209",
    )


def test_what_lets_some_ranks_in() -> None:
    """A decorator of the project around the use, and a condition on a rank that the linter cannot tell."""
    assert agree(
        """
        from functools import wraps

        import torch.distributed as dist
        import wandb

        def rank_zero_only(function):
            @wraps(function)
            def wrapped(*args, **kwargs):
                if not dist.is_initialized() or dist.get_rank() == 0:
                    return function(*args, **kwargs)

            return wrapped

        class Logger:
            def __init__(self, name):
                if not dist.is_initialized() or dist.get_rank() == 0:
                    self.experiment = wandb.init(name=name)

            @rank_zero_only
            def log(self, metrics):
                self.experiment.log(metrics)

        def grid(x, group):
            if dist.get_rank() == 0:
                out = open("out")
            if dist.get_rank(group) == 0 and dist.get_rank(x.group) == 0:
                out.write(x)

        def plain(x):
            if dist.get_rank() == 0:
                text = open("out").read()
            return text + x  # SPG209
        """,
        "SPG209",
    )
