import argparse
import json
import math
import os
import shutil
from pathlib import Path

import evaluate
import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import ProjectConfiguration, broadcast_object_list, set_seed
from datasets import load_dataset
from huggingface_hub import HfApi
from torch.utils.data import DataLoader
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding,
                          get_scheduler)

logger = get_logger(__name__)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="roberta-base")
    p.add_argument("--task", default="mnli")
    p.add_argument("--out", required=True)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-5)
    p.add_argument("--accum", type=int, default=2)
    p.add_argument("--checkpointing-steps", type=int, default=500)
    p.add_argument("--keep", type=int, default=2)
    p.add_argument("--resume", action="store_true")
    p.add_argument("--patience", type=int, default=2)
    p.add_argument("--push-to")
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def newest_state(acc, out):
    pick = [None]
    if acc.is_main_process:
        dirs = [d for d in Path(out).glob("step_*") if (d / "done").exists()]
        pick = [str(max(dirs, key=lambda d: int(d.name.split("_")[1]))) if dirs else None]
    broadcast_object_list(pick, from_process=0)
    return pick[0]


def save_state(acc, args, step):
    target = Path(args.out) / f"step_{step}"
    acc.save_state(str(target))
    acc.wait_for_everyone()
    if acc.is_main_process:
        (target / "done").touch()
        dirs = sorted(Path(args.out).glob("step_*"), key=lambda d: int(d.name.split("_")[1]))
        for old in dirs[:-args.keep]:
            shutil.rmtree(old, ignore_errors=True)


@torch.no_grad()
def evaluate_split(acc, model, loader, metric):
    model.eval()
    for batch in loader:
        preds = model(**batch).logits.argmax(-1)
        preds, refs = acc.gather_for_metrics((preds, batch["labels"]))
        metric.add_batch(predictions=preds, references=refs)
    model.train()
    return metric.compute()


def main():
    args = parse()
    acc = Accelerator(gradient_accumulation_steps=args.accum, log_with="tensorboard",
                      project_config=ProjectConfiguration(args.out))
    set_seed(args.seed)
    if acc.is_main_process:
        os.makedirs(args.out, exist_ok=True)
        if args.push_to:
            HfApi().create_repo(args.push_to, exist_ok=True)
    acc.wait_for_everyone()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    with acc.main_process_first():
        raw = load_dataset("glue", args.task)
        keys = [k for k in raw["train"].column_names if k not in ("label", "idx")]
        data = raw.map(lambda r: {**tokenizer(*[r[k] for k in keys], truncation=True), "labels": r["label"]},
                       batched=True, remove_columns=raw["train"].column_names)
    val_name = "validation_matched" if args.task == "mnli" else "validation"
    collate = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)
    train_dl = DataLoader(data["train"], args.batch, shuffle=True, collate_fn=collate)
    val_dl = DataLoader(data[val_name], args.batch, collate_fn=collate)
    model = AutoModelForSequenceClassification.from_pretrained(
        args.model, num_labels=raw["train"].features["label"].num_classes)
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, optim, train_dl, val_dl = acc.prepare(model, optim, train_dl, val_dl)
    per_epoch = math.ceil(len(train_dl) / args.accum)
    sched = acc.prepare(get_scheduler("linear", optim, 100 * acc.num_processes,
                                      args.epochs * per_epoch * acc.num_processes))
    acc.init_trackers("glue", vars(args))
    metric = evaluate.load("glue", args.task, experiment_id=f"{acc.process_index}-{os.getpid()}")
    done, first_epoch, skip = 0, 0, 0
    path = newest_state(acc, args.out) if args.resume else None
    if path is not None:
        acc.load_state(path)
        done = int(path.rsplit("_", 1)[1])
        first_epoch, skip = done // per_epoch, (done % per_epoch) * args.accum
    best, stale = -1.0, 0
    for epoch in range(first_epoch, args.epochs):
        active = train_dl
        if epoch == first_epoch and skip:
            active = acc.skip_first_batches(train_dl, skip)
        for batch in active:
            with acc.accumulate(model):
                loss = model(**batch).loss
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(model.parameters(), 1.0)
                optim.step()
                sched.step()
                optim.zero_grad()
            if not acc.sync_gradients:
                continue
            done += 1
            if done % args.checkpointing_steps == 0:
                save_state(acc, args, done)
        scores = evaluate_split(acc, model, val_dl, metric)
        acc.log(scores, step=done)
        logger.info("epoch %d: %s", epoch, scores)
        value = scores.get("accuracy", next(iter(scores.values())))
        best, stale = (value, 0) if value > best else (best, stale + 1)
        if stale >= args.patience:
            break
    acc.wait_for_everyone()
    state = acc.get_state_dict(model)
    if acc.is_main_process:
        acc.unwrap_model(model).save_pretrained(args.out, state_dict=state)
        tokenizer.save_pretrained(args.out)
        (Path(args.out) / "all_results.json").write_text(json.dumps({"best": best, "steps": done}))
        if args.push_to:
            HfApi().upload_folder(folder_path=args.out, repo_id=args.push_to, ignore_patterns=["step_*"])
    acc.wait_for_everyone()
    acc.end_training()


if __name__ == "__main__":
    main()
