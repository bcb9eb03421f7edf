"""Fixes that are held back, because every rank would do then what one rank was meant to do."""

from __future__ import annotations

import textwrap

import pytest
from spmdguard_lint.fixes.planning import with_fixes

from tests.lint.fixes.walking import Subject


def fixes(text: str, code: str) -> list[bool]:
    """For each finding of a rule, whether it has a fix."""
    result = Subject("held", text=textwrap.dedent(text)).lint()
    return [f.fix is not None for f in with_fixes(result.findings, result.sources) if f.code == code]


SAVING = """
import shutil
import torch
import torch.distributed as dist


class Loop:
    def save(self):
        {write}
        dist.barrier()

    def fit(self, batches):
        for batch in batches:
            dist.all_reduce(batch)
            if dist.get_rank() == 0:
                self.save()
"""


@pytest.mark.parametrize(
    "write",
    [
        "torch.save(self.model, self.out)",
        "open(self.out, 'w').write('x')",
        "shutil.move(self.out, self.best)",
        "print(self.out)",
        "self.writer.add_scalar('loss', 1)",
        "self.path.write_text('x')",
        "self.table.to_csv(self.out)",
    ],
)
def test_a_call_that_writes_is_not_moved_out_of_a_rank_branch(write: str) -> None:
    """A method that writes to an attribute's path, prints or renames stays where one rank alone calls it."""
    assert fixes(SAVING.format(write=write), "SPG104") == [False]


@pytest.mark.parametrize(
    "write", ["self.count = 1", "open(self.out).read()", "self.total.add_(1)", "x = torch.log(self.x)"]
)
def test_a_call_that_writes_nothing_is_moved(write: str) -> None:
    """The same method without the write has its fix."""
    assert fixes(SAVING.format(write=write), "SPG104") == [True]


def test_a_write_that_the_function_guards_itself_may_be_reached_by_all() -> None:
    """A function that keeps its own write to one rank may be called by all."""
    text = """
    import torch
    import torch.distributed as dist

    def save(model, path):
        if dist.get_rank() < 1:
            torch.save(model, path)
        dist.barrier()

    def fit(model, path):
        if dist.get_rank() < 2:
            save(model, path)
    """
    assert fixes(text, "SPG104") == [True]


def test_a_condition_that_decides_whether_it_happens_at_all_is_kept() -> None:
    """A save of the best state, inside the main rank's branch, is not made one of every round."""
    text = """
    from accelerate import Accelerator

    def train(model, loader):
        accelerator = Accelerator()
        best = 0
        for batch in loader:
            correct = model(batch).item()
            if accelerator.is_main_process:
                if correct > best:
                    best = correct
                    accelerator.save_state("best")
    """
    assert fixes(text, "SPG101") == [False]


def test_a_condition_on_rank_and_data_is_kept() -> None:
    """One condition of both kinds is no choice of ranks alone."""
    text = """
    import torch.distributed as dist

    def train(model, loader):
        for batch in loader:
            loss = model(batch).item()
            dist.all_reduce(batch)
            if dist.get_rank() == 0 and loss > 3:
                dist.barrier()
    """
    assert fixes(text, "SPG101") == [False]


def test_a_call_behind_a_way_out_of_the_arm_is_not_evaluated_before_the_branch() -> None:
    """A return before the call decides on it as well."""
    text = """
    import torch.distributed as dist

    def mean(value):
        dist.all_reduce(value)
        return value

    def report(value, quiet):
        if dist.get_rank() == 0:
            if quiet:
                return
            total = float(mean(value))
            print(total)
    """
    assert fixes(text, "SPG104") == [False]


EVALUATION = """
import torch
import torch.distributed as dist


def forward(model, batch):
    loss = model(batch).sum()
    {step}
    return loss


def over(model, loader):
    total = torch.zeros(())
    for batch in loader:
        loss = forward(model, batch)
        if torch.isnan(loss).item():
            return None
        total += loss
        dist.all_reduce(total)
    return total
"""


@pytest.mark.parametrize(
    ("step", "trains"), [("pass", False), ("loss.backward()", True), ("model.optimizer.step()", True)]
)
def test_an_agreement_to_stop_is_for_the_training_loop(step: str, trains: bool) -> None:
    """A way out of an evaluation is no stop of the whole run; one out of the loop that trains may be."""
    assert fixes(EVALUATION.format(step=step), "SPG102") == [trains]
