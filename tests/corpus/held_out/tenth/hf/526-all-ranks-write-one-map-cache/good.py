import os
from datasets import load_dataset
from transformers import AutoTokenizer, DataCollatorForLanguageModeling, Trainer, TrainingArguments


def encode_all(raw, tokenizer, args, cache_dir, keep):
    picked = raw.shuffle(seed=args.data_seed or 0).select(range(keep))

    def encode(rows):
        return tokenizer(rows["text"], truncation=True, max_length=2048)

    return picked.map(
        encode,
        batched=True,
        remove_columns=picked.column_names,
        cache_file_name=os.path.join(cache_dir, f"encoded-{keep}.arrow"),
    )


def main(base, files, cache_dir, build_model, keep=50_000):
    args = TrainingArguments(
        "out",
        per_device_train_batch_size=2,
        max_steps=5_000,
        data_seed=13,
        deepspeed="configs/zero2.json",
    )
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.pad_token = tokenizer.eos_token
    with args.main_process_first(local=False, desc="encode the data set"):
        raw = load_dataset("parquet", data_files=files, split="train")
        data = encode_all(raw, tokenizer, args, cache_dir, keep)
    trainer = Trainer(
        model=build_model(base),
        args=args,
        train_dataset=data,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    trainer.train()
