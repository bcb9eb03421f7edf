"""SPG507 on Trainers of transformers that stop by what their own evaluation makes of each rank's share."""

from __future__ import annotations

from tests.lint.rules.marked import agree

BEGIN = """
import torch
import transformers
from transformers import EarlyStoppingCallback, Seq2SeqTrainer, Trainer
"""


def test_scores_of_each_ranks_share() -> None:
    """Counts of an evaluation that replaces the library's, a mean of losses in a helper, a loader with a name."""
    for name, base, body in (
        (
            "evaluate",
            "Trainer",
            "right = total = 0\n        for batch in self.get_eval_dataloader(data):\n"
            "            right += self.model.right(batch)\n            total += 1\n"
            "        metrics = {'eval_exact': right / total}\n        self.log(metrics)\n        return metrics",
        ),
        (
            "evaluation_loop",
            "Seq2SeqTrainer",
            "losses = [self.one(batch) for batch in ()]\n        for step, batch in enumerate(data_loader):\n"
            "            losses.append(self.one(batch))\n        return {'eval_loss': sum(losses) / len(losses)}",
        ),
        (
            "evaluate",
            "transformers.Trainer",
            "batches = self.get_eval_dataloader(data)\n        loss = 0.0\n        for batch in batches:\n"
            "            loss += self.one(batch)\n        return {'eval_loss': loss}",
        ),
    ):
        assert agree(
            BEGIN
            + f"""
class Own({base}):
    def one(self, batch):
        return self.model(**batch).loss.item()

    def {name}(self, data=None, data_loader=None):
        {body}

def main(model, args):
    stop = EarlyStoppingCallback(early_stopping_patience=3)  # SPG507
    Own(model=model, args=args, callbacks=[stop]).train()
""",
            "SPG507",
        )


def test_scores_that_all_ranks_share() -> None:
    """Reduced, gathered in a helper, made by the library; an evaluation without a loop, and one that stops nothing."""
    stop = "    stop = EarlyStoppingCallback(early_stopping_patience=3)\n"
    for body, callback in (
        (
            "n = torch.zeros(2)\n        for batch in self.get_eval_dataloader(data):\n"
            "            n += self.one(batch)\n"
            "        return {'eval_exact': self.accelerator.reduce(n)[0].item()}",
            stop,
        ),
        (
            "n = 0\n        for batch in self.get_eval_dataloader(data):\n            n += self.joined(batch)\n"
            "        return {'eval_exact': n}",
            stop,
        ),
        (
            "for batch in self.get_eval_dataloader(data):\n            self.one(batch)\n"
            "        return super().evaluate(data)",
            stop,
        ),
        ("return {'eval_exact': self.one(data)}", stop),
        (
            "n = 0\n        for batch in self.get_eval_dataloader(data):\n            n += self.one(batch)\n"
            "        return {'eval_exact': n}",
            "    stop = None\n",
        ),
    ):
        assert agree(
            BEGIN
            + f"""
class Own(Trainer):
    def one(self, batch):
        return self.model(**batch).loss.item()

    def joined(self, batch):
        return self.accelerator.gather(self.model(**batch).loss).mean().item()

    def evaluate(self, data=None):
        {body}

def main(model, args):
{callback}
    Own(model=model, args=args, callbacks=[stop]).train()
""",
            "SPG507",
        )
