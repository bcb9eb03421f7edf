import argparse
import os

from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoTokenizer
from trl import SFTConfig, SFTTrainer


def settings(opts):
    extra = {}
    if opts.strategy == "fsdp":
        extra = {"fsdp": "full_shard auto_wrap", "fsdp_config": {"use_orig_params": True}}
    return SFTConfig(
        output_dir=opts.out,
        per_device_train_batch_size=opts.batch,
        num_train_epochs=opts.epochs,
        logging_steps=5,
        save_strategy="no",
        bf16=True,
        **extra,
    )


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--model", default="HuggingFaceTB/SmolLM2-135M-Instruct")
    cli.add_argument("--strategy", choices=["ddp", "fsdp"], default="ddp")
    cli.add_argument("--out", default="out")
    cli.add_argument("--batch", type=int, default=2)
    cli.add_argument("--epochs", type=float, default=1.0)
    opts = cli.parse_args()
    is_main = int(os.environ.get("RANK", "0")) == 0
    tokenizer = AutoTokenizer.from_pretrained(opts.model)
    trainer = SFTTrainer(
        model=opts.model,
        args=settings(opts),
        train_dataset=load_dataset("json", data_files="chat.jsonl", split="train"),
        peft_config=LoraConfig(r=16, target_modules="all-linear"),
        processing_class=tokenizer,
    )
    trainer.train()
    if is_main:
        trainer.save_model(opts.out)
        tokenizer.save_pretrained(opts.out)
        print("saved to", opts.out)


if __name__ == "__main__":
    main()
