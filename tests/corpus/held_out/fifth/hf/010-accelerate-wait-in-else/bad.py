import argparse
import math

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.logging import get_logger
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator, get_scheduler

logger = get_logger(__name__)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--model_name_or_path", default="gpt2")
    p.add_argument("--output_dir", required=True)
    p.add_argument("--num_train_epochs", type=int, default=1)
    p.add_argument("--lr", type=float, default=2e-5)
    p.add_argument("--bs", type=int, default=8)
    return p.parse_args()


def save_all(accelerator, model, tokenizer, output_dir):
    if accelerator.is_main_process:
        unwrapped = accelerator.unwrap_model(model)
        state_dict = accelerator.get_state_dict(model)
        unwrapped.save_pretrained(output_dir, state_dict=state_dict, safe_serialization=True)
        tokenizer.save_pretrained(output_dir)
    else:
        accelerator.wait_for_everyone()


def main(train_dataset):
    args = parse_args()
    accelerator = Accelerator(
        mixed_precision="bf16",
        fsdp_plugin=FullyShardedDataParallelPlugin(state_dict_type="FULL_STATE_DICT"),
    )
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
    loader = DataLoader(train_dataset, batch_size=args.bs, shuffle=True, collate_fn=default_data_collator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    total = args.num_train_epochs * math.ceil(len(loader))
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=50, num_training_steps=total)

    for epoch in range(args.num_train_epochs):
        model.train()
        for step, batch in enumerate(loader):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            if step % 100 == 0:
                logger.info(f"epoch {epoch} step {step} loss {loss.item():.3f}")

    save_all(accelerator, model, tokenizer, args.output_dir)
    accelerator.end_training()
