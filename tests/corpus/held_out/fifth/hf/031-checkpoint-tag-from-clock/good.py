import argparse
import os
import signal
import time
from datetime import datetime

import deepspeed
import torch
import torch.distributed as dist

CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2},
    "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
}


class CheckpointPolicy:
    def __init__(self, folder: str, minutes: float, keep: int = 2):
        self.folder = folder
        self.period = minutes * 60
        self.keep = keep
        self.last = time.monotonic()
        self.tags = []

    def due(self, device) -> bool:
        # rank 0's clock decides for all
        flag = torch.tensor([int(time.monotonic() - self.last > self.period)], device=device)
        dist.broadcast(flag, src=0)
        return bool(flag.item())

    def save(self, engine, step: int) -> None:
        stamp = datetime.now().strftime("%m%d-%H%M%S")
        box = [stamp]
        dist.broadcast_object_list(box, src=0)
        stamp = box[0]
        tag = f"step{step}-{stamp}"
        engine.save_checkpoint(self.folder, tag=tag, client_state={"step": step})
        self.tags.append(tag)
        self.last = time.monotonic()
        if dist.get_rank() == 0:
            for old in self.tags[: -self.keep]:
                os.replace(os.path.join(self.folder, old), os.path.join(self.folder, "old-" + old))
        self.tags = self.tags[-self.keep :]


def main(build_model, build_dataset):
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default="ckpt")
    ap.add_argument("--minutes", type=float, default=20)
    ap.add_argument("--steps", type=int, default=100_000)
    ap.add_argument("--local_rank", type=int, default=-1)
    args = ap.parse_args()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    deepspeed.init_distributed()
    model = build_model()
    engine, _, loader, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), training_data=build_dataset(), config=CONFIG
    )
    _, client = engine.load_checkpoint(args.out)
    step = client["step"] if client else 0
    policy = CheckpointPolicy(args.out, args.minutes)
    while step < args.steps:
        for batch in loader:
            loss = engine(batch["input_ids"].to(engine.device), labels=batch["labels"].to(engine.device))
            engine.backward(loss)
            engine.step()
            step += 1
            if policy.due(engine.device):
                policy.save(engine, step)
            if step >= args.steps:
                break
    policy.save(engine, step)
