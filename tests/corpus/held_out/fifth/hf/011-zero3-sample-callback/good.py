import os

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

ZERO3 = {
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "overlap_comm": True, "stage3_param_persistence_threshold": 0},
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
}


class SampleWriter(TrainerCallback):
    """Writes a few continuations after each evaluation."""

    def __init__(self, tokenizer, prompts, folder):
        self.tokenizer = tokenizer
        self.prompts = prompts
        self.folder = folder

    @torch.no_grad()
    def on_evaluate(self, args, state, control, model=None, **kwargs):
        model.eval()
        lines = []
        for prompt in self.prompts:
            enc = self.tokenizer(prompt, return_tensors="pt").to(args.device)
            out = model.generate(**enc, max_new_tokens=64, do_sample=False, synced_gpus=True)
            lines.append(self.tokenizer.decode(out[0], skip_special_tokens=True))
        model.train()
        if not state.is_world_process_zero:
            return
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, f"step{state.global_step}.txt"), "w") as f:
            f.write("\n---\n".join(lines))


def main(train_set, eval_set, name="meta-llama/Llama-3.1-8B"):
    args = TrainingArguments(
        output_dir="runs/zero3",
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        eval_strategy="steps",
        eval_steps=200,
        bf16=True,
        deepspeed=ZERO3,
    )
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name)
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_set,
        eval_dataset=eval_set,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        callbacks=[SampleWriter(tokenizer, ["Once upon a time", "The capital of France"], "samples")],
    )
    trainer.train()
