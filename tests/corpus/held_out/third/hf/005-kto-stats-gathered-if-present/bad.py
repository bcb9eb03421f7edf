import torch
from transformers import Trainer


class UnpairedTrainer(Trainer):
    def __init__(self, *args, beta=0.1, **kwargs):
        super().__init__(*args, **kwargs)
        self.beta = beta
        self.history = {}

    def sequence_logps(self, model, batch):
        logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1]
        labels = batch["input_ids"][:, 1:]
        logps = logits.log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
        return (logps * batch["attention_mask"][:, 1:]).sum(1)

    def note(self, key, values):
        self.history.setdefault(key, []).append(values.mean().item())

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        rewards = self.beta * (self.sequence_logps(model, inputs) - inputs["reference_logps"])
        liked = rewards[inputs["label"].bool()]
        disliked = rewards[~inputs["label"].bool()]
        if len(liked):
            self.note("rewards/chosen", self.accelerator.gather(liked.detach().mean()))
        if len(disliked):
            self.note("rewards/rejected", self.accelerator.gather(disliked.detach().mean()))
        losses = torch.cat([1 - torch.sigmoid(liked), 1 - torch.sigmoid(-disliked)])
        loss = losses.mean()
        return (loss, {"rewards": rewards}) if return_outputs else loss

    def log(self, logs, *args, **kwargs):
        for key, values in self.history.items():
            logs[key] = sum(values) / len(values)
        self.history.clear()
        return super().log(logs, *args, **kwargs)
