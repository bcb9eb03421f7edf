import time
import torch
import torch.distributed as dist
from transformers import Trainer, TrainerCallback, TrainingArguments


class TimeBudget(TrainerCallback):
    """Stop the training after a number of seconds."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.began = None

    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        used = time.monotonic() - self.began
        over = torch.tensor(float(used > self.seconds), device=args.device)
        if dist.is_initialized():
            dist.all_reduce(over, op=dist.ReduceOp.MAX)
        if over.item() > 0:
            control.should_training_stop = True
        return control


def tune(model, dataset, collator, out, budget):
    args = TrainingArguments(
        output_dir=out,
        max_steps=100_000,
        per_device_train_batch_size=4,
        logging_steps=20,
        bf16=True,
        report_to="none",
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=dataset,
        data_collator=collator,
        callbacks=[TimeBudget(budget)],
    )
    trainer.train()
    trainer.save_model(out)
