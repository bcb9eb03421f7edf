"""Trainer callbacks: an agreed wall-clock budget, and a light run journal."""
import json
import time
from datetime import datetime, timezone
from pathlib import Path

import torch
import torch.distributed as dist
from datasets import load_dataset
from transformers import (AutoModelForCausalLM, AutoTokenizer, DataCollatorForLanguageModeling, Trainer,
                          TrainerCallback, TrainingArguments)


class BudgetCallback(TrainerCallback):
    """Saves and stops when any rank's clock says that the budget is used up."""

    def __init__(self, hours, check_every=20):
        self.limit = hours * 3600
        self.check_every = check_every
        self.started = None

    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.monotonic()

    def _anyone_over(self, device):
        over = torch.tensor([float(time.monotonic() - self.started > self.limit)], device=device)
        if dist.is_initialized():
            dist.all_reduce(over, op=dist.ReduceOp.MAX)
        return over.item() > 0

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.check_every != 0:
            return control
        if self._anyone_over(args.device):
            control.should_save = True
            control.should_training_stop = True
        return control


class JournalCallback(TrainerCallback):
    def __init__(self, path):
        self.path = Path(path)

    def _note(self, state, event, **extra):
        if not state.is_world_process_zero:
            return
        line = {"at": datetime.now(timezone.utc).isoformat(), "step": state.global_step, "event": event, **extra}
        try:
            with self.path.open("a") as f:
                f.write(json.dumps(line) + "\n")
        except OSError as err:
            print(f"journal not written: {err}")

    def on_save(self, args, state, control, **kwargs):
        self._note(state, "save")

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        self._note(state, "evaluate", metrics=metrics)

    def on_train_end(self, args, state, control, **kwargs):
        self._note(state, "end")


class PaceCallback(TrainerCallback):
    """Spread over ranks of the local throughput, looked at when the trainer logs."""

    def __init__(self):
        self.mark = None
        self.mark_step = 0

    def on_log(self, args, state, control, logs=None, **kwargs):
        now = time.monotonic()
        if self.mark is None or state.global_step == self.mark_step:
            self.mark, self.mark_step = now, state.global_step
            return
        rate = (state.global_step - self.mark_step) / (now - self.mark)
        self.mark, self.mark_step = now, state.global_step
        pair = torch.tensor([rate, -rate], device=args.device, dtype=torch.float32)
        if dist.is_initialized():
            dist.all_reduce(pair, op=dist.ReduceOp.MIN)
        if state.is_world_process_zero:
            print(f"steps/s over ranks: {pair[0].item():.2f} to {-pair[1].item():.2f}")


def main():
    name = "gpt2"
    args = TrainingArguments(
        output_dir="budget-run", per_device_train_batch_size=4, num_train_epochs=50, logging_steps=50,
        save_strategy="steps", save_steps=500, eval_strategy="steps", eval_steps=500, save_total_limit=3,
        ddp_timeout=3600, report_to="none")
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.pad_token = tokenizer.eos_token
    with args.main_process_first(desc="tokenise"):
        raw = load_dataset("wikitext", "wikitext-2-raw-v1").filter(lambda r: len(r["text"]) > 40)
        data = raw.map(lambda r: tokenizer(r["text"], truncation=True, max_length=256), batched=True,
                       remove_columns=["text"])
    trainer = Trainer(
        model=AutoModelForCausalLM.from_pretrained(name), args=args,
        train_dataset=data["train"], eval_dataset=data["validation"],
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        callbacks=[BudgetCallback(hours=7.5), JournalCallback("journal.jsonl"), PaceCallback()])
    trainer.train()
    trainer.save_model()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
