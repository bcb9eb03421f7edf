"""Causal LM fine-tuning with step or epoch checkpoints and resume, on accelerate."""
import argparse
import math
import os
import shutil
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import broadcast_object_list, set_seed
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator, get_scheduler


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="gpt2")
    ap.add_argument("--block", type=int, default=512)
    ap.add_argument("--bs", type=int, default=8)
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--max_train_steps", type=int, default=None)
    ap.add_argument("--checkpointing_steps", default=None, help="a number of steps, or 'epoch'")
    ap.add_argument("--resume_from_checkpoint", default=None, help="a folder, or 'latest'")
    ap.add_argument("--output_dir", default="clm")
    return ap.parse_args()


def newest_checkpoint(folder):
    if not os.path.isdir(folder):
        return None
    found = [d for d in os.listdir(folder) if d.startswith(("step_", "epoch_"))]
    if not found:
        return None
    return os.path.join(folder, max(found, key=lambda d: os.path.getctime(os.path.join(folder, d))))


def agreed_resume_path(accelerator, args):
    """The main process looks at the disk, everyone else takes its word."""
    if args.resume_from_checkpoint is None:
        return None
    box = [None]
    if accelerator.is_main_process:
        wanted = args.resume_from_checkpoint
        box[0] = newest_checkpoint(args.output_dir) if wanted == "latest" else wanted
    broadcast_object_list(box, from_process=0)
    return box[0]


def group_texts(examples, block):
    joined = {k: sum(examples[k], []) for k in examples}
    usable = (len(joined["input_ids"]) // block) * block
    out = {k: [v[i:i + block] for i in range(0, usable, block)] for k, v in joined.items()}
    out["labels"] = [list(row) for row in out["input_ids"]]
    return out


def main():
    args = get_args()
    accelerator = Accelerator(
        gradient_accumulation_steps=args.accum,
        kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=90))],
    )
    set_seed(17)
    if accelerator.is_main_process:
        os.makedirs(args.output_dir, exist_ok=True)
    accelerator.wait_for_everyone()

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model)
    with accelerator.main_process_first():
        raw = load_dataset("wikitext", "wikitext-2-raw-v1")
        tok = raw.map(lambda e: tokenizer(e["text"]), batched=True, remove_columns=["text"])
        lm = tok.map(lambda e: group_texts(e, args.block), batched=True)
    train_dl = DataLoader(lm["train"], shuffle=True, collate_fn=default_data_collator, batch_size=args.bs)
    eval_dl = DataLoader(lm["validation"], collate_fn=default_data_collator, batch_size=args.bs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model, optimizer, train_dl, eval_dl = accelerator.prepare(model, optimizer, train_dl, eval_dl)

    steps_per_epoch = math.ceil(len(train_dl) / args.accum)
    if args.max_train_steps is None:
        args.max_train_steps = args.epochs * steps_per_epoch
    args.epochs = math.ceil(args.max_train_steps / steps_per_epoch)
    scheduler = accelerator.prepare(get_scheduler(
        "cosine", optimizer, num_warmup_steps=50 * accelerator.num_processes,
        num_training_steps=args.max_train_steps * accelerator.num_processes))

    checkpointing_steps = args.checkpointing_steps
    if checkpointing_steps is not None and checkpointing_steps.isdigit():
        checkpointing_steps = int(checkpointing_steps)

    starting_epoch, resume_step, completed_steps = 0, None, 0
    path = agreed_resume_path(accelerator, args)
    if path is not None:
        accelerator.print(f"resuming from {path}")
        accelerator.load_state(path)
        tag = os.path.basename(path.rstrip("/"))
        if tag.startswith("epoch_"):
            starting_epoch = int(tag.removeprefix("epoch_")) + 1
            completed_steps = starting_epoch * steps_per_epoch
        else:
            completed_steps = int(tag.removeprefix("step_"))
            starting_epoch = completed_steps // steps_per_epoch
            resume_step = (completed_steps - starting_epoch * steps_per_epoch) * args.accum

    for epoch in range(starting_epoch, args.epochs):
        model.train()
        if epoch == starting_epoch and resume_step:
            active = accelerator.skip_first_batches(train_dl, resume_step)
        else:
            active = train_dl
        for batch in active:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                completed_steps += 1
                if isinstance(checkpointing_steps, int) and completed_steps % checkpointing_steps == 0:
                    accelerator.save_state(os.path.join(args.output_dir, f"step_{completed_steps}"))
            if completed_steps >= args.max_train_steps:
                break

        model.eval()
        losses = []
        for batch in eval_dl:
            with torch.no_grad():
                loss = model(**batch).loss
            losses.append(accelerator.gather_for_metrics(loss.repeat(batch["input_ids"].shape[0])))
        try:
            perplexity = math.exp(torch.cat(losses).mean().item())
        except OverflowError:
            perplexity = float("inf")
        accelerator.print(f"epoch {epoch}: perplexity {perplexity:.2f}")
        if checkpointing_steps == "epoch":
            accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))

    accelerator.wait_for_everyone()
    final = os.path.join(args.output_dir, "final")
    if accelerator.is_main_process:
        shutil.rmtree(final, ignore_errors=True)
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained(
        final, is_main_process=accelerator.is_main_process, save_function=accelerator.save)
    if accelerator.is_main_process:
        tokenizer.save_pretrained(final)
    accelerator.end_training()


if __name__ == "__main__":
    main()
