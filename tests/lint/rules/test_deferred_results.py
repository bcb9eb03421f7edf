"""Results of work whose errors are kept: the default stands in their place on the rank that failed, until all know."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG202", "SPG401")
HEAD = """
import json
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, rank_local, sync_should_stop, try_or_defer

def read_index(path):
    return [int(line) for line in Path(path).read_text().split()]

def read_table(path):
    return {"steps": 3, "items": json.loads(Path(path).read_text())}

@rank_local
def kept_index(path):
    return [int(line) for line in Path(path).read_text().split()]

@rank_local
def kept_number(path):
    return int(Path(path).read_text())
"""


def test_defaults_that_decide_about_collectives() -> None:
    """None, or the empty list in its place, where the work failed on this rank alone."""
    assert agree(
        HEAD
        + """
def plan(path):
    return try_or_defer(read_index, path) or []

def rounds(path):
    for offset in plan(path):
        dist.all_reduce(torch.tensor(offset))  # SPG401

def decorated(path):
    offsets = kept_index(path)
    for offset in offsets or ():
        dist.all_reduce(torch.tensor(offset))  # SPG401

def leaves(path):
    table = try_or_defer(read_table, path)
    if table is None:
        return  # SPG102
    dist.barrier()

def number(path):
    for _ in range(kept_number(path) or 0):
        dist.barrier()  # SPG401

class Reader:
    def __init__(self, path):
        self.offsets = try_or_defer(read_index, path) or []

    def run(self):
        for offset in self.offsets:
            dist.all_reduce(torch.tensor(offset))  # SPG401

def main(path):
    Reader(path).run()
""",
        *CODES,
    )


def test_failures_that_all_ranks_know_of() -> None:
    """Behind an agreement each rank has its result, whatever is asked of it."""
    assert agree(
        HEAD
        + """
def told(path):
    offsets = kept_index(path)
    if sync_should_stop(has_deferred_error()):
        return
    for offset in offsets or ():
        dist.all_reduce(torch.tensor(offset))

def told_of_one(path):
    number = kept_number(path)
    if sync_should_stop(number is None):
        return
    for _ in range(number or 0):
        dist.barrier()

def told_by_tensor(path):
    offsets = try_or_defer(read_index, path)
    failed = torch.tensor(int(has_deferred_error()))
    dist.all_reduce(failed)
    if failed.item():
        return
    for offset in offsets or ():
        dist.all_reduce(torch.tensor(offset))

def check():
    if sync_should_stop(has_deferred_error()):
        raise RuntimeError("a rank has failed")

def told_by_helper(path):
    for name in ("first", "second"):
        number = kept_number(path)
        check()
        for _ in range(number or 0):
            dist.barrier()

def told_by_helper_again(path):
    number = kept_number(path)
    check()
    for _ in range(number or 0):
        dist.barrier()

class Reader:
    def __init__(self, path):
        self.offsets = try_or_defer(read_index, path) or []
        if sync_should_stop(has_deferred_error()):
            raise RuntimeError("a rank has failed")

    def run(self):
        for offset in self.offsets:
            dist.all_reduce(torch.tensor(offset))

def main(path):
    Reader(path).run()

def by_one(path):
    box = [None]
    if dist.get_rank() == 0:
        box[0] = try_or_defer(read_index, path)
    dist.broadcast_object_list(box, src=0)
    for offset in box[0] or []:
        dist.all_reduce(torch.tensor(offset))
""",
        *CODES,
    )


def test_results_that_must_be_there() -> None:
    """What None has not is asked of the result: a rank without it ends there, and runs no other number of rounds."""
    assert agree(
        HEAD
        + """
def steps(path):
    table = try_or_defer(read_table, path)
    for _ in range(table["steps"]):
        dist.barrier()

def items(path):
    for offset in kept_index(path):
        dist.all_reduce(torch.tensor(offset))

def changed(path):
    offsets = kept_index(path)
    offsets.append(3)
    for index in range(len(offsets)):
        dist.all_reduce(torch.tensor(offsets[index]))
""",
        *CODES,
    )
