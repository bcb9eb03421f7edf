import argparse
from itertools import chain

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator, get_scheduler

logger = get_logger(__name__)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name_or_path", default="gpt2")
    parser.add_argument("--train_file", required=True)
    parser.add_argument("--block_size", type=int, default=1024)
    parser.add_argument("--max_train_steps", type=int, default=10_000)
    return parser.parse_args()


def prepare_blocks(args, raw, tokenizer, accelerator):
    def tokenize(rows):
        return tokenizer(rows["text"])

    def group(rows):
        joined = {k: list(chain(*rows[k])) for k in rows}
        total = len(joined["input_ids"]) // args.block_size * args.block_size
        cut = {k: [v[i:i + args.block_size] for i in range(0, total, args.block_size)] for k, v in joined.items()}
        cut["labels"] = [list(b) for b in cut["input_ids"]]
        return cut

    with accelerator.main_process_first():
        tokens = raw.map(tokenize, batched=True, remove_columns=raw.column_names)
        blocks = tokens.map(group, batched=True)
    count = torch.tensor([len(blocks)], device=accelerator.device)
    counts = accelerator.gather(count)
    if counts.unique().numel() != 1:
        raise RuntimeError(f"processes see different data sets: {counts.tolist()}")
    logger.info(f"{counts[0].item()} blocks of {args.block_size} tokens")
    return blocks


def main():
    args = parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=4)
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
    raw = load_dataset("text", data_files=args.train_file, split="train")
    blocks = prepare_blocks(args, raw, tokenizer, accelerator)
    loader = DataLoader(blocks, batch_size=4, shuffle=True, collate_fn=default_data_collator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    schedule = get_scheduler("cosine", optimizer, 500, args.max_train_steps)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    for step, batch in zip(range(args.max_train_steps), loader):
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
