from collections import defaultdict

import torch
import torch.nn.functional as F
from transformers import Trainer


def sequence_logps(logits, labels):
    labels = labels[:, 1:].clone()
    mask = labels != -100
    labels[~mask] = 0
    logp = torch.gather(logits[:, :-1].log_softmax(-1), 2, labels.unsqueeze(2)).squeeze(2)
    return (logp * mask).sum(-1)


class DesirableTrainer(Trainer):
    """Unpaired preference learning: each example is labelled good or bad."""

    def __init__(self, *args, ref_model=None, beta=0.1, **kwargs):
        super().__init__(*args, **kwargs)
        self.beta = beta
        self.ref_model = self.accelerator.prepare_model(ref_model, evaluation_mode=True)
        self._stored = defaultdict(list)

    def _rewards(self, model, inputs):
        kwargs = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}
        policy = sequence_logps(model(**kwargs).logits, inputs["labels"])
        with torch.no_grad():
            reference = sequence_logps(self.ref_model(**kwargs).logits, inputs["labels"])
        return self.beta * (policy - reference)

    def _track(self, name, values):
        if values.numel() > 0:
            gathered = self.accelerator.gather(values.detach().mean().reshape(1))
            self._stored[name].append(gathered.mean().item())

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        rewards = self._rewards(model, inputs)
        good = inputs["desirable"].bool()
        chosen, rejected = rewards[good], rewards[~good]
        loss = torch.cat([1 - F.sigmoid(chosen), 1 - F.sigmoid(-rejected)]).mean()
        self._track("rewards/chosen", chosen)
        self._track("rewards/rejected", rejected)
        return (loss, {"rewards": rewards}) if return_outputs else loss

    def log(self, logs, *args, **kwargs):
        for name, values in self._stored.items():
            logs[name] = sum(values) / len(values)
        self._stored.clear()
        super().log(logs, *args, **kwargs)
