import argparse
import json
from pathlib import Path

import torch
from accelerate import Accelerator
from datasets import load_from_disk
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding


def evaluate(accelerator, model, loader):
    model.eval()
    right = total = 0
    for batch in loader:
        with torch.no_grad():
            guess = model(**batch).logits.argmax(-1)
        guess, gold = accelerator.gather_for_metrics((guess, batch["labels"]))
        right += (guess == gold).sum().item()
        total += len(gold)
    model.train()
    return right / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="roberta-large")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", type=Path, default=Path("out/cls"))
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    accelerator = Accelerator(mixed_precision="fp16")
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=3)
    data = load_from_disk(args.data)
    collate = DataCollatorWithPadding(tokenizer)
    train, dev, test = (DataLoader(data[s], batch_size=16, shuffle=s == "train", collate_fn=collate)
                        for s in ("train", "dev", "test"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    model, optimizer, train, dev, test = accelerator.prepare(model, optimizer, train, dev, test)

    best, best_dir = -1.0, args.out / "best"
    for epoch in range(args.epochs):
        for batch in train:
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()
        score = evaluate(accelerator, model, dev)
        if score > best:
            best = score
            if accelerator.is_main_process:
                accelerator.unwrap_model(model).save_pretrained(best_dir)

    accelerator.wait_for_everyone()
    final = AutoModelForSequenceClassification.from_pretrained(best_dir)
    accelerator.unwrap_model(model).load_state_dict(final.state_dict())
    score = evaluate(accelerator, model, test)
    if accelerator.is_main_process:
        (args.out / "test.json").write_text(json.dumps({"dev": best, "test": score}))


if __name__ == "__main__":
    main()
