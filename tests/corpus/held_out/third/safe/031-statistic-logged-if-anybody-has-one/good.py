import torch
from transformers import Trainer


class PairlessTrainer(Trainer):
    def __init__(self, *args, beta=0.1, **kwargs):
        super().__init__(*args, **kwargs)
        self.beta = beta
        self.sums = {}

    def keep(self, key, rows):
        pair = torch.stack([rows.detach().sum(), rows.new_tensor(float(len(rows)))])
        total, count = self.accelerator.reduce(pair, "sum").tolist()
        if count > 0:
            self.sums.setdefault(key, []).append(total / count)

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        scores = model(inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits.squeeze(-1)
        liked, disliked = scores[inputs["label"] == 1], scores[inputs["label"] == 0]
        self.keep("rewards/chosen", liked)
        self.keep("rewards/rejected", disliked)
        losses = torch.cat([1 - torch.sigmoid(self.beta * liked), torch.sigmoid(self.beta * disliked)])
        loss = losses.mean()
        return (loss, {"scores": scores}) if return_outputs else loss

    def log(self, logs, *args, **kwargs):
        for key, values in self.sums.items():
            logs[key] = sum(values) / len(values)
        self.sums = {}
        return super().log(logs, *args, **kwargs)
