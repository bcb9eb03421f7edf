import datetime
import os
from dataclasses import dataclass, field
from functools import partial
from typing import Optional

import torch
import transformers
from datasets import load_dataset
from torch.distributed import barrier
from transformers import DataCollatorForLanguageModeling, Trainer


@dataclass
class ModelArguments:
    model_name_or_path: str = "meta-llama/Llama-2-7b-hf"


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    cache_dir: Optional[str] = field(default=None)
    model_max_length: int = field(default=16384)
    data_name: str = field(default="togethercomputer/RedPajama-Data-1T-Sample")


def tokenize_fn(tokenizer, max_length, rows):
    out = tokenizer(tokenizer.eos_token.join(rows["text"]), truncation=False, return_tensors="pt")
    ids = out["input_ids"].flatten()
    usable = (len(ids) // max_length) * max_length
    return {"input_ids": ids[:usable].view(-1, max_length).tolist()}


def build_dataset(args: TrainingArguments, tokenizer):
    rank = int(os.environ.get("RANK", -1))
    if rank > 0:
        barrier()
    dataset = load_dataset(args.data_name, cache_dir=args.cache_dir, split="train")
    dataset = dataset.map(
        partial(tokenize_fn, tokenizer, args.model_max_length),
        batched=True,
        num_proc=20,
        remove_columns=dataset.column_names,
    )
    if rank == 0:
        barrier()
    return dataset


def train():
    if "RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl", timeout=datetime.timedelta(hours=6))
    parser = transformers.HfArgumentParser((ModelArguments, TrainingArguments))
    model_args, args = parser.parse_args_into_dataclasses()
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        model_args.model_name_or_path, model_max_length=args.model_max_length
    )
    tokenizer.pad_token = tokenizer.eos_token
    dataset = build_dataset(args, tokenizer)
    model = transformers.AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
    model.gradient_checkpointing_enable()
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=dataset,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    trainer.train()
    trainer.save_state()
    trainer.save_model(args.output_dir)


if __name__ == "__main__":
    train()
