"""`spmdguard adopt` and functions in which ranks meet; runs that are started in one expression."""

from __future__ import annotations

import pytest
from spmdguard_lint.adopt.command import adopt_command

pytestmark = pytest.mark.once

SCRIPT = """\
import torch
import torch.distributed as dist
import torch.nn as nn


class Trainer:
    def __init__(self, model, out):
        self.model = model
        self.out = out
        self.opt = torch.optim.SGD(model.parameters(), 0.1)

    def save(self):
        torch.save(self.model.state_dict(), self.out)
{meet}
    def fit(self, loader):
        for x in loader:
            self.model(x).sum().backward()
            self.opt.step()
        {save}


def main():
    dist.init_process_group("gloo")
    {start}
    dist.destroy_process_group()


main()
"""
ONE = 'Trainer(nn.Linear(2, 2), "x.pt").fit([])'
TWO = 'trainer = Trainer(nn.Linear(2, 2), "x.pt")\n    trainer.fit([])'


@pytest.mark.parametrize("start", [ONE, TWO])
@pytest.mark.parametrize("meets", [True, False])
def test_a_function_that_meets_other_ranks_is_not_declared_rank_local(
    start, meets, tmp_path, monkeypatch, capsys
):
    """A save with a barrier keeps only its write for later; one without is declared; the entry is a run both ways."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    meet, save = "        dist.barrier()\n", "self.save()"
    if not meets:
        meet, save = "", "if dist.get_rank() == 0:\n            self.save()"
    path.write_text(SCRIPT.format(meet=meet, save=save, start=start))
    code = adopt_command(["--isolated", "--write", "train.py"])
    assert (code, "is left" in capsys.readouterr().err) == (0, False)
    text = path.read_text()
    assert ("@rank_local" in text, 'with deferring("torch.save"):' in text) == (not meets, meets)
    assert "@run()\ndef main():" in text
    assert "destroy_process_group" not in text
