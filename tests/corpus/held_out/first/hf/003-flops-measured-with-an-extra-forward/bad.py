import argparse
import json

import deepspeed
import torch
from deepspeed.profiling.flops_profiler import FlopsProfiler
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AutoModelForCausalLM, AutoTokenizer


def say(message, rank):
    if rank <= 0:
        print(message, flush=True)


class Texts(torch.utils.data.Dataset):
    def __init__(self, path, tokenizer, length):
        with open(path) as f:
            rows = [json.loads(line)["text"] for line in f]
        self.items = tokenizer(rows, truncation=True, padding="max_length",
                               max_length=length, return_tensors="pt")

    def __len__(self):
        return self.items["input_ids"].size(0)

    def __getitem__(self, i):
        item = {k: v[i] for k, v in self.items.items()}
        return {**item, "labels": item["input_ids"].clone()}


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--data", required=True)
    parser.add_argument("--print_steps", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--local_rank", type=int, default=-1)
    return deepspeed.add_config_arguments(parser).parse_args()


def main():
    args = get_args()
    deepspeed.init_distributed()
    rank = torch.distributed.get_rank()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(args.model)
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
    data = Texts(args.data, tokenizer, 512)
    loader = DataLoader(data, batch_size=engine.train_micro_batch_size_per_gpu(),
                        sampler=DistributedSampler(data), drop_last=True)
    profiler = FlopsProfiler(engine)
    for epoch in range(args.epochs):
        for step, batch in enumerate(loader, 1):
            batch = {k: v.to(engine.device) for k, v in batch.items()}
            if step % args.print_steps == 0 and rank == 0:
                profiler.start_profile()
                outputs = engine(**batch, use_cache=False)
                profiler.stop_profile()
                say(f"{step}: loss {outputs.loss.item():.3f} flops {profiler.get_total_flops(True)}", rank)
                profiler.end_profile()
            loss = engine(**batch, use_cache=False).loss
            engine.backward(loss)
            engine.step()
    engine.save_checkpoint("out")


if __name__ == "__main__":
    main()
