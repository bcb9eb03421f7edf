import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def build_features(split):
    gen = torch.Generator().manual_seed(len(split))
    return {"x": torch.randn(64, 10, generator=gen), "y": torch.randint(0, 2, (64,), generator=gen)}


def load_and_cache_examples(args, split):
    cached = os.path.join(args.cache_dir, f"features_{split}.pt")
    if args.local_rank not in (-1, 0):
        dist.barrier()
    if os.path.exists(cached):
        features = torch.load(cached)
    else:
        features = build_features(split)
        if args.local_rank in (-1, 0):
            torch.save(features, cached)
    if args.local_rank == 0:
        dist.barrier()
    return torch.utils.data.TensorDataset(features["x"], features["y"])


def train(args, model):
    data = load_and_cache_examples(args, "train")
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for x, y in torch.utils.data.DataLoader(data, batch_size=8):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def evaluate(args, model):
    data = load_and_cache_examples(args, "dev")
    x, y = data.tensors
    with torch.no_grad():
        return (model.module(x).argmax(1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--cache_dir", default="/tmp")
    parser.add_argument("--do_eval", action="store_true")
    args = parser.parse_args()
    args.local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    model = DDP(torch.nn.Linear(10, 2))
    train(args, model)
    if args.do_eval and args.local_rank in (-1, 0):
        print("accuracy", evaluate(args, model))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
