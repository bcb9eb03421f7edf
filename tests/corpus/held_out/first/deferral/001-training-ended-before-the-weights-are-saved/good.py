import argparse
import math

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoConfig, AutoModelForSequenceClassification, get_scheduler


def parse_args():
    p = argparse.ArgumentParser(description="Pair classification without the Trainer")
    p.add_argument("--model_name", default="prajjwal1/bert-tiny")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--lr", type=float, default=2e-5)
    p.add_argument("--output_dir", default=None)
    p.add_argument("--with_tracking", action="store_true")
    p.add_argument("--report_to", default="all")
    return p.parse_args()


def pairs(count, vocab):
    ids = torch.randint(5, vocab, (count, 24))
    return TensorDataset(ids, (ids[:, 0] > ids[:, 1]).long())


def main():
    args = parse_args()
    accelerator = (
        Accelerator(log_with=args.report_to, project_dir=args.output_dir)
        if args.with_tracking else Accelerator()
    )
    config = AutoConfig.from_pretrained(args.model_name, num_labels=2)
    model = AutoModelForSequenceClassification.from_pretrained(args.model_name, config=config)
    loader = DataLoader(pairs(4000, config.vocab_size), batch_size=32, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    steps = args.epochs * math.ceil(len(loader))
    schedule = accelerator.prepare(get_scheduler("linear", optimizer, 0, steps))
    if args.with_tracking:
        accelerator.init_trackers("pairs", vars(args))
    done = 0
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for ids, labels in loader:
            loss = model(input_ids=ids, labels=labels).loss
            total += loss.detach().float()
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            done += 1
        if args.with_tracking:
            accelerator.log({"train_loss": total.item() / len(loader), "epoch": epoch}, step=done)
    if args.output_dir is not None:
        accelerator.wait_for_everyone()
        inner = accelerator.unwrap_model(model)
        inner.save_pretrained(
            args.output_dir,
            is_main_process=accelerator.is_main_process,
            state_dict=accelerator.get_state_dict(model),
        )
    if args.with_tracking:
        accelerator.end_training()


if __name__ == "__main__":
    main()
