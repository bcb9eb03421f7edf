import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments


class StopAfterSeconds(TrainerCallback):
    def __init__(self, limit, warmup_steps=5):
        self.limit = limit
        self.warmup_steps = warmup_steps
        self.began = None

    def on_step_begin(self, args, state, control, **kwargs):
        if self.began is None and state.global_step >= self.warmup_steps:
            self.began = time.monotonic()
        return control

    def on_step_end(self, args, state, control, **kwargs):
        if self.began is None:
            return control
        if time.monotonic() - self.began >= self.limit:
            control.should_training_stop = True
            control.should_save = False
        return control


class Throughput(TrainerCallback):
    def __init__(self):
        self.samples = 0

    def on_step_end(self, args, state, control, **kwargs):
        self.samples += args.per_device_train_batch_size * args.gradient_accumulation_steps

    def on_train_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            print("samples per device", self.samples)


def benchmark(model, train_set, collator, seconds):
    args = TrainingArguments("bench", max_steps=100_000, per_device_train_batch_size=4, report_to="none")
    torch.manual_seed(args.seed)
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_set,
        data_collator=collator,
        callbacks=[StopAfterSeconds(seconds), Throughput()],
    )
    trainer.train()
