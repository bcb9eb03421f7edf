import argparse
import json
import os
from datetime import timedelta

import deepspeed
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import Dataset

DS_CONFIG = {
    "train_micro_batch_size_per_gpu": 8,
    "gradient_accumulation_steps": 4,
    "optimizer": {"type": "AdamW", "params": {"lr": 2e-4, "betas": [0.9, 0.95]}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}},
    "fp16": {"enabled": True, "initial_scale_power": 12},
    "gradient_clipping": 1.0,
    "zero_optimization": {"stage": 2, "overlap_comm": True, "contiguous_gradients": True},
}


class Sums(Dataset):
    """Learn (a + b) mod m from token triples."""

    def __init__(self, modulus=97):
        grid = torch.cartesian_prod(torch.arange(modulus), torch.arange(modulus))
        self.x, self.y = grid, grid.sum(1) % modulus

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Net(nn.Module):
    def __init__(self, modulus=97, width=256):
        super().__init__()
        self.emb = nn.Embedding(modulus, width)
        self.body = nn.Sequential(nn.Linear(2 * width, 4 * width), nn.GELU(), nn.Linear(4 * width, modulus))

    def forward(self, x, y):
        logits = self.body(self.emb(x).flatten(1))
        return nn.functional.cross_entropy(logits.float(), y), logits


def rank0_print(*parts):
    if dist.get_rank() == 0:
        print(*parts, flush=True)


def mean_over_ranks(value, device):
    t = torch.tensor([value], device=device)
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item()


def evaluate(engine, loader):
    engine.eval()
    hits = torch.zeros(2, device=engine.device)
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(engine.device), y.to(engine.device)
            _, logits = engine(x, y)
            hits += torch.stack([(logits.argmax(-1) == y).sum(), torch.tensor(y.numel(), device=y.device)])
    dist.all_reduce(hits)
    engine.train()
    return (hits[0] / hits[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
    ap.add_argument("--epochs", type=int, default=30)
    ap.add_argument("--save_dir", default="ds-ckpt")
    ap.add_argument("--save_every", type=int, default=200)
    ap.add_argument("--resume_tag", default=None)
    args = ap.parse_args()

    torch.cuda.set_device(args.local_rank)
    deepspeed.init_distributed("nccl", timeout=timedelta(minutes=30))
    torch.manual_seed(0)

    data = Sums()
    net = Net()
    engine, _, loader, _ = deepspeed.initialize(
        model=net, model_parameters=net.parameters(), training_data=data, config=DS_CONFIG)
    test_loader = engine.deepspeed_io(data, batch_size=64, route="eval")

    start_epoch = 0
    if args.resume_tag is not None:
        path, client = engine.load_checkpoint(args.save_dir, tag=args.resume_tag)
        if path is None:
            raise FileNotFoundError(f"{args.save_dir}/{args.resume_tag} on rank {dist.get_rank()}")
        start_epoch = client["epoch"]
        rank0_print("resumed", path, "at epoch", start_epoch)

    for epoch in range(start_epoch, args.epochs):
        if hasattr(loader, "data_sampler") and hasattr(loader.data_sampler, "set_epoch"):
            loader.data_sampler.set_epoch(epoch)
        for x, y in loader:
            loss, _ = engine(x.to(engine.device), y.to(engine.device))
            engine.backward(loss)
            boundary = engine.is_gradient_accumulation_boundary()
            engine.step()
            if not boundary:
                continue
            step = engine.global_steps
            if step % 20 == 0:
                shown = mean_over_ranks(loss.item(), engine.device)
                rank0_print(f"epoch {epoch} step {step} loss {shown:.4f} scale {engine.optimizer.cur_scale:g}")
            if step % args.save_every == 0:
                engine.save_checkpoint(args.save_dir, tag=f"step{step}", client_state={"epoch": epoch})
        acc = evaluate(engine, test_loader)
        rank0_print(f"epoch {epoch} accuracy {acc:.4f}")
        if acc > 0.999:
            break

    engine.save_checkpoint(args.save_dir, tag="last", client_state={"epoch": args.epochs})
    if dist.get_rank() == 0:
        with open(os.path.join(args.save_dir, "config.json"), "w") as f:
            json.dump(DS_CONFIG, f, indent=1)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
