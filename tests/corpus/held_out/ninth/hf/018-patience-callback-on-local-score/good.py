import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from transformers import Trainer, TrainerCallback, TrainingArguments


class ExactMatchPatience(TrainerCallback):
    def __init__(self, dataset, patience=2):
        sampler = DistributedSampler(dataset, shuffle=False)
        self.loader = DataLoader(dataset, batch_size=16, sampler=sampler)
        self.patience, self.best, self.bad = patience, -1.0, 0

    @torch.no_grad()
    def on_epoch_end(self, args, state, control, model=None, **kwargs):
        model.eval()
        hits = seen = 0
        for batch in self.loader:
            batch = {k: v.to(args.device) for k, v in batch.items()}
            guess = model(**batch).logits.argmax(-1)
            hits += (guess == batch["labels"]).sum().item()
            seen += guess.numel()
        model.train()
        counts = torch.tensor([hits, seen], device=args.device)
        dist.all_reduce(counts)
        score = counts[0].item() / counts[1].item()
        self.bad = 0 if score > self.best else self.bad + 1
        self.best = max(self.best, score)
        if self.bad >= self.patience:
            control.should_training_stop = True
        return control


def main(model, train_set, dev_set):
    args = TrainingArguments("out", num_train_epochs=50, per_device_train_batch_size=16)
    Trainer(model=model, args=args, train_dataset=train_set,
            callbacks=[ExactMatchPatience(dev_set)]).train()
