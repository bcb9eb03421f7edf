"""What `spmdguard adopt` says beside the difference: what was mended, what stays, which adapters fit."""

from __future__ import annotations

import pytest
from spmdguard_lint.adopt.command import adopt_command
from spmdguard_lint.adopt.notes import Note
from spmdguard_lint.source.reading import decode_source

pytestmark = pytest.mark.once

ACCELERATE = """\
import torch
from accelerate import Accelerator


def main(model, opt, batches):
    accelerator = {made}
    model, opt, batches = accelerator.prepare(model, opt, batches)
    for epoch in range(3):
        for batch in batches:
            loss = model(batch).mean()
            accelerator.backward(loss)
            opt.step()
            accelerator.log({{"loss": loss.item()}})
        if accelerator.is_main_process:
            torch.save(model.state_dict(), "x.pt")
            {check}
        accelerator.wait_for_everyone()


main(None, None, None)
"""
RAISE = 'if epoch == 2:\n                raise OSError("disk full")'
LEFT = "remark: left as it is: "


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Adopt some files, and give the exit code with the lines on standard error."""
    monkeypatch.chdir(tmp_path)

    def adopt(text: str, *options: str, **others: str) -> tuple[int, list[str]]:
        names = ["a.py", *(f"{name}.py" for name in others)]
        for name, content in zip(names, (text, *others.values()), strict=True):
            (tmp_path / name).write_text(content)
        code = adopt_command(["--isolated", *options, *names])
        return code, capsys.readouterr().err.splitlines()

    return adopt


def test_what_is_mended_is_said_once_with_rule_and_line(said):
    """Each mended finding has its line, in the file as it is: the old one, or with `--write` the new one."""
    mended = "SPG201 is mended: keep its error for later, `with deferring(...)`"
    text = ACCELERATE.format(made="Accelerator()", check="pass")
    code, lines = said(text)
    assert code == 0
    assert [line for line in lines if "mended" in line] == [f"a.py:13: {mended}", f"a.py:15: {mended}"]
    _, lines = said(text, "--write")
    assert [line for line in lines if "mended" in line] == [f"a.py:16: {mended}", f"a.py:23: {mended}"]


def test_fixes_of_both_stages_are_told_apart(said):
    """An exit that is agreed on at first, and a save that is deferred at last: one line each, no bare counts."""
    text = ACCELERATE.format(made="Accelerator()", check="pass").replace(
        "            opt.step()\n",
        "            opt.step()\n            if accelerator.is_main_process:\n                break\n",
    )
    _, lines = said(text)
    deferred = "SPG201 is mended: keep its error for later, `with deferring(...)`"
    assert [line for line in lines if "mended" in line] == [
        "a.py:14: SPG102 is mended: agree on the exit with the other ranks",
        "a.py:14: SPG307 is mended: leave the outer loop as well",
        f"a.py:15: {deferred}",
        f"a.py:17: {deferred}",
    ]


def test_accelerate_is_pointed_to_its_guard(said):
    """A plain `Accelerator` gets a remark with the lines to write; a guarded one none."""
    code, lines = said(ACCELERATE.format(made="Accelerator(log_with=None)", check="pass"))
    at = lines.index("a.py:6: remark: Accelerate's `Accelerator` is not guarded. Write:")
    assert code == 0
    assert lines[at + 1 :] == [
        "    from spmdguard.integrations.accelerate import guard_accelerator",
        "    accelerator = guard_accelerator(Accelerator(...))  # before `prepare`",
    ]
    _, lines = said(ACCELERATE.format(made="guard_accelerator(Accelerator())", check="pass"))
    assert [line for line in lines if "remark" in line] == []


def test_a_raise_that_stays_is_said(said):
    """A raise under the main rank's test is named with its line, its branch and what to do."""
    code, lines = said(ACCELERATE.format(made="guard_accelerator(Accelerator())", check=RAISE))
    assert code == 0
    assert [line for line in lines if "remark" in line] == [
        f'a.py:17: {LEFT}`raise OSError("disk full")` in the branch on `accelerator.is_main_process` ends some ranks '
        "alone, and the others may wait for them: let every rank raise it, or put it into "
        "`with spmdguard.deferring(...):` or a function with `@spmdguard.rank_local`"
    ]


@pytest.mark.parametrize(
    "check",
    [
        'with spmdguard.deferring("check"):\n                raise OSError("disk full")',
        'try:\n                raise OSError("disk full")\n            except OSError:\n                pass',
        'def later():\n                raise OSError("disk full")',
        "if epoch == 2:\n                raise SystemExit",
    ],
)
def test_a_raise_that_ends_no_rank_alone_is_not_said(check, said):
    """One that is deferred or caught, one of a function that is only defined, and an exit have no remark."""
    _, lines = said(ACCELERATE.format(made="guard_accelerator(Accelerator())", check=check))
    assert [line for line in lines if LEFT in line] == []


def test_a_raise_that_is_found_is_not_said_twice(said):
    """Where the linter reports the raise itself, the finding is enough."""
    check = 'raise OSError("disk full")'
    code, lines = said(ACCELERATE.format(made="guard_accelerator(Accelerator())", check=check))
    assert code == 1
    assert [line.split(":")[1] for line in lines if "SPG205 is left" in line] == ["16"]
    assert [line for line in lines if LEFT in line] == []


NOTHING = "no training loop of the program's own was found: nothing to rewrite"
HOLDS = "holds the training loop, which is not guarded. Write:"


@pytest.mark.parametrize(
    ("imports", "made", "name", "written"),
    [
        (
            "import lightning.pytorch as pl",
            "pl.Trainer(devices=2)",
            "Trainer",
            "pl.Trainer(..., callbacks=[S])",
        ),
        (
            "from lightning import Trainer",
            "Trainer(callbacks=[x])",
            "Trainer",
            "Trainer(..., callbacks=[..., S])",
        ),
        ("import pytorch_lightning", "pytorch_lightning.Trainer()", "Trainer", None),
    ],
)
def test_lightning_is_pointed_to_its_callback(imports, made, name, written, said):
    """A script with a Lightning `Trainer` gets the lines to add, in its own words."""
    code, lines = said(f"{imports}\n\ntrainer = {made}\ntrainer.fit(model)\n")
    written = (written or "pytorch_lightning.Trainer(..., callbacks=[S])").replace(
        "S]", "SpmdguardCallback()]"
    )
    assert code == 0
    assert lines == [
        NOTHING,
        f"a.py:3: remark: Lightning's `{name}` {HOLDS}",
        "    from spmdguard import run",
        "    from spmdguard.integrations.lightning import SpmdguardCallback",
        f"    trainer = {written}",
        "    @run()  # above the function that calls `trainer.fit(...)`",
    ]


def test_lightning_command_line(said):
    """`LightningCLI` makes the trainer: it is given the callback as a default."""
    _, lines = said("from lightning.pytorch.cli import LightningCLI\n\ncli = LightningCLI(Model)\n")
    assert '    LightningCLI(..., trainer_defaults={"callbacks": [SpmdguardCallback()]})' in lines


@pytest.mark.parametrize("made", ["Trainer(model)", "Own(model)"])
def test_hugging_face_is_pointed_to_its_guard(made, said):
    """The trainer, or a class of the program's own made from it, gets the lines to add behind it."""
    own = "from transformers import Trainer\n\n\nclass Own(Trainer): ...\n"
    text = f"from transformers import Trainer\nfrom own import Own\n\nmine = {made}\nmine.train()\n"
    code, lines = said(text, own=own)
    assert code == 0
    assert lines == [
        NOTHING,
        f"a.py:4: remark: Hugging Face's `Trainer` {HOLDS}",
        "    from spmdguard import run",
        "    from spmdguard.integrations.transformers import guard_trainer",
        f"    guard_trainer(mine)  # behind `mine = {made[:-6]}...)`: it adds `SpmdguardTrainerCallback`",
        "    @run()  # above the function that calls `mine.train(...)`",
    ]


LOOP = """\
import lightning as L
import deepspeed


def main(model, batches):
    {made}
    for batch in batches:
        {step}


main(None, None)
"""


def test_fabric_is_pointed_to_its_guard(said):
    """The loop is rewritten, and the object that it trains with has a remark."""
    step = "fabric.backward(model(batch))\n        optimizer.step()"
    _, lines = said(LOOP.format(made="fabric = L.Fabric(devices=2)", step=step))
    at = lines.index("a.py:6: remark: Lightning's `Fabric` is not guarded. Write:")
    assert lines[at + 1 :] == [
        "    from spmdguard.integrations.lightning import guard_fabric",
        "    fabric = guard_fabric(L.Fabric(...))",
    ]


@pytest.mark.parametrize(
    "step", ["engine.backward(engine(batch))\n        engine.step()", "engine.train_batch()"]
)
def test_deepspeed_is_pointed_to_its_guard(step, said):
    """The engine has a remark; where the loop was not recognised, with what its steps and the run need."""
    _, lines = said(LOOP.format(made="engine, *_ = deepspeed.initialize(model=model)", step=step))
    at = lines.index("a.py:6: remark: DeepSpeed's `initialize` is not guarded. Write:")
    guard = [
        "    from spmdguard.integrations.deepspeed import guard_engine",
        "    guard_engine(engine)  # behind `engine, ... = deepspeed.initialize(...)`",
    ]
    by_hand = [
        "    if sync_should_stop(): break  # at the end of each step",
        "    @run()  # above the function that holds the loop",
    ]
    if "train_batch" in step:
        guard = ["    from spmdguard import run, sync_should_stop", *guard, *by_hand]
    assert lines[at + 1 :] == guard


@pytest.mark.parametrize(
    "text",
    [
        "from lightning import Trainer\nTrainer(callbacks=[SpmdguardCallback()]).fit(m)\n",
        "from transformers import Trainer\nt = Trainer(m)\nguard_trainer(t).train()\n",
        "from transformers import Trainer\nTrainer(m, callbacks=[SpmdguardTrainerCallback()]).train()\n",
        "from mine import Trainer\nTrainer(m).fit()\n",
        "class Trainer: ...\nTrainer().fit()\n",
    ],
)
def test_no_remark_where_none_is_needed(text, said):
    """A program that has the adapter, and one whose trainer is its own, get none."""
    assert said(text) == (0, ["no training loop was found: nothing to adopt"])


def test_adopting_twice_says_that_nothing_is_rewritten(said):
    """The second time says so, and not that there were no training loop."""
    said(ACCELERATE.format(made="guard_accelerator(Accelerator())", check="pass"), "--write")
    with open("a.py") as written:
        assert said(written.read()) == (0, ["nothing to rewrite"])


@pytest.mark.parametrize(("row", "expected"), [(1, 2), (2, 4), (3, 5), (4, 6)])
def test_rows_move_with_their_lines(row, expected):
    """Rows follow lines through insertions and indentation; a line that is gone is where its neighbour is."""
    before = decode_source(b"a()\nb()\nc()\nd()\n", "a.py")
    after = decode_source(b"import x\na()\nwith x:\n    b()\nC()\nd()\n", "a.py")
    assert Note("a.py", row, "").moved(before, after).row == expected
    assert Note("a.py", expected, "").moved(after, before).row == row
    assert Note("a.py", 3, "").moved(after, before).row == 1
    assert Note("a.py", 1, "").moved(after, before).row == 1
