import argparse
import time

import deepspeed
import torch
from deepspeed.profiling.flops_profiler import FlopsProfiler


def print_rank_0(msg, rank):
    if rank <= 0:
        print(msg, flush=True)


def to_device(batch, device):
    return {k: v.to(device, non_blocking=True) for k, v in batch.items()}


def ds_config(args):
    return {
        "train_micro_batch_size_per_gpu": args.micro_batch,
        "gradient_accumulation_steps": 1,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 3, "offload_param": {"device": "none"}},
        "optimizer": {"type": "AdamW", "params": {"lr": args.lr}},
    }


def train(args, model, train_set, collate):
    deepspeed.init_distributed()
    args.global_rank = torch.distributed.get_rank()
    engine, _, loader, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        training_data=train_set,
        collate_fn=collate,
        config=ds_config(args),
    )
    prof = FlopsProfiler(engine)
    for epoch in range(args.epochs):
        engine.train()
        started = time.time()
        for step, batch in enumerate(loader):
            batch = to_device(batch, engine.device)
            outputs = engine(**batch, use_cache=False)
            engine.backward(outputs.loss)
            engine.step()

            if (step + 1) % args.num_print_steps == 0:
                prof.start_profile()
                with torch.no_grad():
                    probe = engine(**batch, use_cache=False)
                prof.stop_profile()
                flops = prof.get_total_flops()
                prof.end_profile()
                took = (time.time() - started) / (step + 1)
                print_rank_0(f"step {step + 1} loss {probe.loss:.3f} tflops {flops / took / 1e12:.1f}", args.global_rank)
        engine.save_checkpoint(args.output_dir, tag=f"epoch{epoch}")
    print_rank_0("done", args.global_rank)


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--output_dir", default="ckpt")
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--lr", type=float, default=1e-5)
    p.add_argument("--micro_batch", type=int, default=2)
    p.add_argument("--num_print_steps", type=int, default=50)
    p.add_argument("--local_rank", type=int, default=-1)
    return p.parse_args()
