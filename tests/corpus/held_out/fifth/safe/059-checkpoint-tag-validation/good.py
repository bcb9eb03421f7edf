import argparse
import hashlib
import os

import deepspeed
import torch
import torch.distributed as dist


class TagMismatch(RuntimeError):
    pass


def check_same_tag(tag: str, device) -> None:
    digest = torch.tensor(list(hashlib.sha1(tag.encode()).digest()), dtype=torch.uint8, device=device)
    low, high = digest.clone(), digest.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    if not (torch.equal(low, digest) and torch.equal(high, digest)):
        raise TagMismatch(f"rank {dist.get_rank()}: the checkpoint tag {tag!r} is not the same on all ranks")


def save(engine, folder: str, tag: str, client_state: dict) -> None:
    check_same_tag(tag, engine.device)
    engine.save_checkpoint(folder, tag=tag, client_state=client_state)
    if dist.get_rank() == 0:
        old = sorted((d for d in os.listdir(folder) if d.startswith("step")), key=lambda d: int(d[4:]))[:-3]
        for d in old:
            os.rename(os.path.join(folder, d), os.path.join(folder, f"expired-{d}"))
    dist.barrier()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--local_rank", type=int, default=-1)
    ap.add_argument("--folder", default="/ckpt/ds")
    ap.add_argument("--steps", type=int, default=1000)
    args = ap.parse_args()
    deepspeed.init_distributed()
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config={
            "train_micro_batch_size_per_gpu": 8,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
            "zero_optimization": {"stage": 2},
        },
    )
    for step in range(1, args.steps + 1):
        x = torch.randn(8, 512, device=engine.device)
        loss = (engine(x) - x).square().mean()
        engine.backward(loss)
        engine.step()
        if step % 250 == 0:
            save(engine, args.folder, f"step{step}", {"step": step, "loss": loss.item()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
