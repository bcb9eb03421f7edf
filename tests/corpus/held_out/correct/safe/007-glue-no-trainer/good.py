"""Fine-tune a sequence classifier with accelerate, own loop, no Trainer."""
import argparse
import json
import os
from datetime import timedelta

import evaluate
import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import InitProcessGroupKwargs, set_seed
from datasets import load_dataset
from huggingface_hub import HfApi
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding,
                          get_scheduler)

logger = get_logger(__name__)
KEYS = {"cola": ("sentence", None), "mrpc": ("sentence1", "sentence2"), "rte": ("sentence1", "sentence2")}


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--task_name", default="mrpc", choices=sorted(KEYS))
    p.add_argument("--model_name_or_path", default="bert-base-cased")
    p.add_argument("--max_length", type=int, default=128)
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--learning_rate", type=float, default=5e-5)
    p.add_argument("--num_train_epochs", type=int, default=3)
    p.add_argument("--gradient_accumulation_steps", type=int, default=1)
    p.add_argument("--output_dir", default=None)
    p.add_argument("--push_to_hub", action="store_true")
    p.add_argument("--hub_model_id", default=None)
    p.add_argument("--with_tracking", action="store_true")
    p.add_argument("--report_to", default="tensorboard")
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    if args.push_to_hub and not args.output_dir:
        raise ValueError("--push_to_hub needs an --output_dir")
    return args


def main():
    args = parse_args()
    patience = InitProcessGroupKwargs(timeout=timedelta(hours=2))
    kw = dict(log_with=args.report_to, project_dir=args.output_dir or "runs") if args.with_tracking else {}
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps,
                              kwargs_handlers=[patience], **kw)
    logger.info(accelerator.state, main_process_only=False)
    set_seed(args.seed)

    api = repo_id = None
    if accelerator.is_main_process:
        if args.push_to_hub:
            api = HfApi()
            repo_id = api.create_repo(args.hub_model_id, exist_ok=True).repo_id
        if args.output_dir is not None:
            os.makedirs(args.output_dir, exist_ok=True)
    accelerator.wait_for_everyone()

    with accelerator.main_process_first():
        raw = load_dataset("nyu-mll/glue", args.task_name)
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    num_labels = raw["train"].features["label"].num_classes
    model = AutoModelForSequenceClassification.from_pretrained(args.model_name_or_path, num_labels=num_labels)
    a, b = KEYS[args.task_name]

    def preprocess(rows):
        texts = (rows[a],) if b is None else (rows[a], rows[b])
        enc = tokenizer(*texts, max_length=args.max_length, truncation=True)
        enc["labels"] = rows["label"]
        return enc

    with accelerator.main_process_first():
        done = raw.map(preprocess, batched=True, remove_columns=raw["train"].column_names)
    collate = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)
    train_dl = DataLoader(done["train"], shuffle=True, collate_fn=collate, batch_size=args.batch_size)
    eval_dl = DataLoader(done["validation"], collate_fn=collate, batch_size=args.batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    model, optimizer, train_dl, eval_dl = accelerator.prepare(model, optimizer, train_dl, eval_dl)
    per_epoch = -(-len(train_dl) // args.gradient_accumulation_steps)
    total = per_epoch * args.num_train_epochs
    scheduler = accelerator.prepare(get_scheduler(
        "linear", optimizer, num_warmup_steps=0, num_training_steps=total * accelerator.num_processes))
    if args.with_tracking:
        accelerator.init_trackers("glue_no_trainer", {"lr": args.learning_rate, "task": args.task_name})
    metric = evaluate.load("glue", args.task_name, num_process=1)

    bar = tqdm(range(total), disable=not accelerator.is_local_main_process)
    eval_metric = {}
    for epoch in range(args.num_train_epochs):
        model.train()
        running = torch.zeros((), device=accelerator.device)
        for batch in train_dl:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                running += loss.detach()
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                bar.update(1)
        model.eval()
        for batch in eval_dl:
            with torch.no_grad():
                outputs = model(**batch)
            preds, refs = accelerator.gather_for_metrics((outputs.logits.argmax(-1), batch["labels"]))
            metric.add_batch(predictions=preds, references=refs)
        eval_metric = metric.compute()
        mean_loss = accelerator.reduce(running / len(train_dl), reduction="mean").item()
        logger.info(f"epoch {epoch}: {eval_metric} (train {mean_loss:.4f})")
        if args.with_tracking:
            accelerator.log({"train_loss": mean_loss, **eval_metric}, step=epoch)

    if args.output_dir is not None:
        accelerator.wait_for_everyone()
        unwrapped = accelerator.unwrap_model(model)
        unwrapped.save_pretrained(args.output_dir, is_main_process=accelerator.is_main_process,
                                  save_function=accelerator.save,
                                  state_dict=accelerator.get_state_dict(model))
        if accelerator.is_main_process:
            tokenizer.save_pretrained(args.output_dir)
            with open(os.path.join(args.output_dir, "all_results.json"), "w") as f:
                json.dump({f"eval_{k}": v for k, v in eval_metric.items()}, f)
            if args.push_to_hub:
                api.upload_folder(folder_path=args.output_dir, repo_id=repo_id, commit_message="End of training")
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
