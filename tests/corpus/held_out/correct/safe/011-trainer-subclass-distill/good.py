"""Distillation with a Trainer subclass; launched by torchrun."""
import json
import os
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from datasets import load_dataset
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding,
                          HfArgumentParser, Trainer, TrainingArguments, set_seed)


@dataclass
class DistillArguments:
    student: str = field(default="distilbert-base-uncased")
    teacher: str = field(default="bert-base-uncased-finetuned-sst2")
    temperature: float = field(default=2.0)
    alpha: float = field(default=0.5, metadata={"help": "weight of the soft targets"})


class DistillTrainer(Trainer):
    def __init__(self, *args, teacher, temperature, alpha, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.to(self.args.device).eval().requires_grad_(False)
        self.temperature, self.alpha = temperature, alpha
        self._soft_sum, self._soft_n = torch.zeros((), device=self.args.device), 0

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        with torch.no_grad():
            t_logits = self.teacher(**{k: v for k, v in inputs.items() if k != "labels"}).logits
        t = self.temperature
        soft = F.kl_div(F.log_softmax(outputs.logits / t, -1), F.softmax(t_logits / t, -1),
                        reduction="batchmean") * t * t
        loss = self.alpha * soft + (1 - self.alpha) * outputs.loss
        if model.training:
            self._soft_sum += soft.detach()
            self._soft_n += 1
        return (loss, outputs) if return_outputs else loss

    def evaluate(self, *args, **kwargs):
        metrics = super().evaluate(*args, **kwargs)
        packed = torch.stack([self._soft_sum, torch.full_like(self._soft_sum, float(self._soft_n))])
        gathered = self.accelerator.gather(packed.unsqueeze(0))
        self._soft_sum.zero_()
        self._soft_n = 0
        total, count = gathered.sum(0).tolist()
        if count > 0:
            self.log({"train_soft_loss": total / count})
        return metrics


def accuracy(pred):
    logits, labels = pred
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


def main():
    parser = HfArgumentParser((DistillArguments, TrainingArguments))
    d_args, t_args = parser.parse_args_into_dataclasses()
    set_seed(t_args.seed)

    tokenizer = AutoTokenizer.from_pretrained(d_args.student)
    with t_args.main_process_first(desc="dataset map"):
        raw = load_dataset("nyu-mll/glue", "sst2")
        data = raw.map(lambda r: tokenizer(r["sentence"], truncation=True, max_length=128), batched=True)
        data = data.rename_column("label", "labels").remove_columns(["sentence", "idx"])

    trainer = DistillTrainer(
        model=AutoModelForSequenceClassification.from_pretrained(d_args.student, num_labels=2),
        args=t_args,
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=accuracy,
        teacher=AutoModelForSequenceClassification.from_pretrained(d_args.teacher, num_labels=2),
        temperature=d_args.temperature,
        alpha=d_args.alpha,
    )
    trainer.train(resume_from_checkpoint=t_args.resume_from_checkpoint)
    trainer.save_model()
    metrics = trainer.evaluate()
    trainer.log_metrics("eval", metrics)
    if trainer.is_world_process_zero():
        with open(os.path.join(t_args.output_dir, "distill.json"), "w") as f:
            json.dump({"temperature": d_args.temperature, **metrics}, f, indent=2)
        tokenizer.save_pretrained(t_args.output_dir)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
