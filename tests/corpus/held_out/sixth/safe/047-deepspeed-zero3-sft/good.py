import argparse
import json
import math
import os
import shutil
import time

import deepspeed
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, default_data_collator

from sft_data import PromptDataset


def options():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--micro", type=int, default=4)
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--lr", type=float, default=1e-5)
    ap.add_argument("--stage", type=int, default=3)
    ap.add_argument("--save-interval", type=int, default=200)
    ap.add_argument("--keep", type=int, default=2)
    ap.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", -1)))
    return ap.parse_args()


def config(args):
    return {
        "train_micro_batch_size_per_gpu": args.micro,
        "gradient_accumulation_steps": args.accum,
        "bf16": {"enabled": True},
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": args.lr, "betas": [0.9, 0.95]}},
        "zero_optimization": {"stage": args.stage, "overlap_comm": True,
                              "stage3_gather_16bit_weights_on_model_save": False},
    }


def say(msg):
    if dist.get_rank() == 0:
        print(time.strftime("%H:%M:%S"), msg, flush=True)


def mean_over_ranks(t):
    t = t.detach().float().clone()
    dist.all_reduce(t, op=dist.ReduceOp.AVG)
    return t


@torch.no_grad()
def perplexity(engine, loader):
    engine.eval()
    total, n = torch.zeros((), device=engine.device), 0
    for batch in loader:
        total += engine(**{k: v.to(engine.device) for k, v in batch.items()}, use_cache=False).loss.float()
        n += 1
    engine.train()
    value = mean_over_ranks(total / max(n, 1)).item()
    return math.exp(min(value, 50.0)), value


def export(engine, tokenizer, folder, stage):
    """Writes a plain HF checkpoint; partitioned parameters are gathered one by one."""
    lead = dist.get_rank() == 0
    module = engine.module
    state = {}
    if stage == 3:
        for name, p in module.named_parameters():
            with deepspeed.zero.GatheredParameters([p], enabled=hasattr(p, "ds_id")):
                if lead:
                    state[name] = p.detach().cpu().clone()
    elif lead:
        state = {k: v.cpu() for k, v in module.state_dict().items()}
    if not lead:
        return
    os.makedirs(folder, exist_ok=True)
    module.save_pretrained(folder, state_dict=state)
    tokenizer.save_pretrained(folder)


def checkpoint(engine, args, step, epoch):
    tag = f"step{step:06d}"
    engine.save_checkpoint(args.out, tag=tag, client_state={"step": step, "epoch": epoch})
    dist.barrier()
    if dist.get_rank() != 0:
        return
    tags = sorted(d for d in os.listdir(args.out) if d.startswith("step"))
    for old in tags[:-args.keep]:
        shutil.rmtree(os.path.join(args.out, old), ignore_errors=True)


def main():
    args = options()
    deepspeed.init_distributed()
    torch.cuda.set_device(args.local_rank)
    os.makedirs(args.out, exist_ok=True)
    deepspeed.runtime.utils.set_random_seed(1234)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    ds = config(args)
    with deepspeed.zero.Init(config_dict_or_path=ds, enabled=args.stage == 3):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(args.model))
    train_set = PromptDataset(args.data, "train", tokenizer)
    eval_set = PromptDataset(args.data, "eval", tokenizer)
    sampler = DistributedSampler(train_set, seed=1234, drop_last=True)
    loader = DataLoader(train_set, args.micro, sampler=sampler, drop_last=True, collate_fn=default_data_collator)
    eval_loader = DataLoader(eval_set, args.micro, sampler=DistributedSampler(eval_set, shuffle=False),
                             collate_fn=default_data_collator)
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters(), config=ds)
    loaded, client = engine.load_checkpoint(args.out)
    step = client["step"] if loaded is not None else 0
    first = client["epoch"] if loaded is not None else 0
    best = math.inf
    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = engine(**{k: v.to(engine.device) for k, v in batch.items()}, use_cache=False).loss
            engine.backward(loss)
            boundary = engine.is_gradient_accumulation_boundary()
            engine.step()
            if not boundary:
                continue
            step += 1
            if step % 10 == 0:
                say(f"epoch {epoch} step {step} loss {mean_over_ranks(loss).item():.4f}")
            if step % args.save_interval == 0:
                checkpoint(engine, args, step, epoch)
        ppl, value = perplexity(engine, eval_loader)
        say(f"epoch {epoch}: ppl {ppl:.2f}")
        if value < best:
            best = value
            export(engine, tokenizer, os.path.join(args.out, "best"), args.stage)
            dist.barrier()
    if dist.get_rank() == 0:
        with open(os.path.join(args.out, "summary.json"), "w") as f:
            json.dump({"best": best, "steps": step}, f)
    dist.barrier()


if __name__ == "__main__":
    main()
