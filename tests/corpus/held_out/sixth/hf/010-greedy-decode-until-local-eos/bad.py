import argparse
import json

import deepspeed
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from summ.data import SummaryDataset, pad_batch

DS_CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}},
}


@torch.inference_mode()
def decode(engine, batch, tokenizer, max_new_tokens):
    device = engine.device
    src, mask = batch["ids"].to(device), batch["mask"].to(device)
    out = torch.full((src.size(0), 1), tokenizer.pad_token_id, device=device)
    done = torch.zeros(src.size(0), dtype=torch.bool, device=device)
    for _ in range(max_new_tokens):
        logits = engine(input_ids=src, attention_mask=mask, decoder_input_ids=out).logits[:, -1]
        token = logits.argmax(-1).masked_fill(done, tokenizer.pad_token_id)
        out = torch.cat([out, token[:, None]], dim=1)
        done |= token == tokenizer.eos_token_id
        if done.all():
            break
    return tokenizer.batch_decode(out[:, 1:], skip_special_tokens=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="google/flan-t5-xxl")
    parser.add_argument("--data", required=True)
    parser.add_argument("--max_new_tokens", type=int, default=128)
    parser.add_argument("--local_rank", type=int, default=-1)
    args = parser.parse_args()

    deepspeed.init_distributed()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(args.model, torch_dtype=torch.bfloat16)
    engine, *_ = deepspeed.initialize(model=model, config=DS_CONFIG)
    engine.eval()
    dataset = SummaryDataset(args.data, tokenizer)
    loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset, shuffle=False), collate_fn=pad_batch)
    with open(f"pred.{dist.get_rank()}.jsonl", "w") as f:
        for batch in loader:
            for key, text in zip(batch["key"], decode(engine, batch, tokenizer, args.max_new_tokens)):
                f.write(json.dumps({"key": key, "summary": text}) + "\n")
    dist.barrier()


if __name__ == "__main__":
    main()
