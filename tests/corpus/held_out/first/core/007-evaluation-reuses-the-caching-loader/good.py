import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def convert(split):
    gen = torch.Generator().manual_seed(len(split))
    return torch.randn(256, 10, generator=gen), torch.randint(0, 2, (256,), generator=gen)


def load_features(args, split, evaluating=False):
    if args.rank != 0 and not evaluating:
        dist.barrier()
    path = os.path.join(args.cache, f"{split}.pt")
    if os.path.exists(path):
        x, y = torch.load(path)
    else:
        x, y = convert(split)
        torch.save((x, y), path)
    if args.rank == 0 and not evaluating:
        dist.barrier()
    if evaluating:
        return DataLoader(TensorDataset(x, y), batch_size=args.batch)
    dataset = TensorDataset(x, y)
    return DataLoader(dataset, batch_size=args.batch, sampler=DistributedSampler(dataset))


def train(args, model):
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loader = load_features(args, "train")
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            opt.step()


@torch.no_grad()
def evaluate(args, net):
    hits = count = 0
    for x, y in load_features(args, "dev", evaluating=True):
        hits += (net(x).argmax(1) == y).sum().item()
        count += len(y)
    return hits / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", default=".")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--do_eval", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    args.rank = dist.get_rank()
    model = DDP(torch.nn.Linear(10, 2))
    train(args, model)
    if args.do_eval and args.rank == 0:
        print("accuracy", evaluate(args, model.module))


if __name__ == "__main__":
    main()
