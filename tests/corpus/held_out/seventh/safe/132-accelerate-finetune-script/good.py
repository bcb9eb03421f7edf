"""Fine-tune a text classifier with accelerate: resume, rotation, best model."""

import argparse
import json
import math
import os
import shutil

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import ProjectConfiguration, broadcast_object_list, set_seed
from datasets import load_dataset
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    get_linear_schedule_with_warmup,
)

logger = get_logger(__name__)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="distilbert-base-uncased")
    p.add_argument("--train", required=True, help="json lines with text and label")
    p.add_argument("--valid", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--accumulate", type=int, default=2)
    p.add_argument("--lr", type=float, default=5e-5)
    p.add_argument("--save-steps", type=int, default=200)
    p.add_argument("--keep", type=int, default=2)
    p.add_argument("--resume", action="store_true")
    p.add_argument("--seed", type=int, default=7)
    return p.parse_args()


def checkpoints(folder):
    found = [d for d in os.listdir(folder) if d.startswith("step-")]
    return sorted(found, key=lambda d: int(d.split("-")[1]))


def latest(accelerator, folder):
    """Name of the newest checkpoint as the main process sees it, or None."""
    box = [None]
    if accelerator.is_main_process:
        names = checkpoints(folder)
        if names:
            box[0] = names[-1]
    broadcast_object_list(box, from_process=0)
    return box[0]


def tokenised(accelerator, args, tokenizer):
    files = {"train": args.train, "valid": args.valid}
    # the main process fills the cache of the datasets library, the others read it
    with accelerator.main_process_first():
        data = load_dataset("json", data_files=files)
        data = data.map(
            lambda rows: tokenizer(rows["text"], truncation=True, max_length=256),
            batched=True,
            remove_columns=["text"],
        )
    return data.rename_column("label", "labels")


@torch.no_grad()
def evaluate(accelerator, model, loader):
    model.eval()
    hits = seen = 0
    for batch in loader:
        guess = model(**batch).logits.argmax(dim=-1)
        guess, labels = accelerator.gather_for_metrics((guess, batch["labels"]))
        hits += (guess == labels).sum().item()
        seen += len(labels)
    model.train()
    return hits / max(seen, 1)


def save(accelerator, args, step, place):
    folder = os.path.join(args.out, f"step-{step}")
    accelerator.save_state(folder)
    if accelerator.is_main_process:
        with open(os.path.join(folder, "place.json"), "w", encoding="utf-8") as f:
            json.dump(place, f)
        for old in checkpoints(args.out)[: -args.keep]:
            shutil.rmtree(os.path.join(args.out, old), ignore_errors=True)
    accelerator.wait_for_everyone()


def export(accelerator, model, tokenizer, folder):
    accelerator.wait_for_everyone()
    state = accelerator.get_state_dict(model)
    accelerator.unwrap_model(model).save_pretrained(
        folder,
        is_main_process=accelerator.is_main_process,
        save_function=accelerator.save,
        state_dict=state,
    )
    if accelerator.is_main_process:
        tokenizer.save_pretrained(folder)


def main():
    args = parse_args()
    accelerator = Accelerator(
        gradient_accumulation_steps=args.accumulate,
        log_with="tensorboard",
        project_config=ProjectConfiguration(project_dir=args.out),
    )
    set_seed(args.seed)
    if accelerator.is_main_process:
        os.makedirs(args.out, exist_ok=True)
    accelerator.wait_for_everyone()
    accelerator.init_trackers("finetune", config=vars(args))

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    data = tokenised(accelerator, args, tokenizer)
    collate = DataCollatorWithPadding(tokenizer)
    loader = DataLoader(data["train"], args.batch, shuffle=True, collate_fn=collate)
    valid = DataLoader(data["valid"], 2 * args.batch, collate_fn=collate)
    labels = len(set(data["train"]["labels"]))
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=labels)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, opt, loader, valid = accelerator.prepare(model, opt, loader, valid)
    per_epoch = math.ceil(len(loader) / args.accumulate)
    schedule = get_linear_schedule_with_warmup(opt, 0, per_epoch * args.epochs)
    accelerator.register_for_checkpointing(schedule)

    step, first_epoch, skip, best = 0, 0, 0, -1.0
    name = latest(accelerator, args.out) if args.resume else None
    if name is not None:
        folder = os.path.join(args.out, name)
        accelerator.load_state(folder)
        with open(os.path.join(folder, "place.json"), encoding="utf-8") as f:
            place = json.load(f)
        step, first_epoch, skip, best = (place[k] for k in ("step", "epoch", "batch", "best"))
        logger.info(f"resumed {name}")

    bar = tqdm(total=per_epoch * args.epochs, initial=step, disable=not accelerator.is_local_main_process)
    for epoch in range(first_epoch, args.epochs):
        rest = loader
        if epoch == first_epoch and skip:
            rest = accelerator.skip_first_batches(loader, skip)
        for i, batch in enumerate(rest, start=skip if epoch == first_epoch else 0):
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
            if not accelerator.sync_gradients:
                continue
            schedule.step()
            step += 1
            bar.update(1)
            if step % 20 == 0:
                mean = accelerator.reduce(loss.detach(), reduction="mean")
                accelerator.log({"loss": mean.item()}, step=step)
            if step % args.save_steps == 0:
                place = {"step": step, "epoch": epoch, "batch": i + 1, "best": best}
                save(accelerator, args, step, place)
        accuracy = evaluate(accelerator, model, valid)
        accelerator.log({"accuracy": accuracy}, step=step)
        if accuracy > best:  # computed from gathered rows, equal on all processes
            best = accuracy
            export(accelerator, model, tokenizer, os.path.join(args.out, "best"))
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
