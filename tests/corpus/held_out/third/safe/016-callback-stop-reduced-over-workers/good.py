import time

import torch
import torch.distributed as dist
from transformers import Trainer, TrainerCallback, TrainingArguments


class TimeBudget(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds
        self.began = time.monotonic()

    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.monotonic()

    def over(self, device):
        mine = torch.tensor([float(time.monotonic() - self.began > self.seconds)], device=device)
        if dist.is_initialized() and dist.get_world_size() > 1:
            dist.all_reduce(mine, op=dist.ReduceOp.MAX)
        return mine.item() > 0

    def on_step_end(self, args, state, control, **kwargs):
        if self.over(args.device):
            control.should_training_stop = True
        return control


def finetune(model, train_set, seconds):
    args = TrainingArguments("out", max_steps=50_000, save_strategy="no", report_to="none")
    trainer = Trainer(model=model, args=args, train_dataset=train_set, callbacks=[TimeBudget(seconds)])
    return trainer.train().metrics
