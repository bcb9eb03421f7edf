import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from tqdm.auto import tqdm


@dataclass
class Args:
    epochs: int = 3
    batch_size: int = 16
    eval_every: int = 50
    lr: float = 5e-4


def make_split(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 20, generator=g)
    return TensorDataset(x, (x.sum(dim=1) > 0).long())


def make_loader(dataset, batch_size, shuffle):
    sampler = DistributedSampler(dataset, shuffle=shuffle)
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    counts = torch.zeros(2, device=device)
    for x, y in loader:
        pred = model.module(x.to(device)).argmax(dim=1)
        counts[0] += (pred == y.to(device)).sum()
        counts[1] += y.numel()
    dist.all_reduce(counts)
    model.train()
    return (counts[0] / counts[1]).item()


def train(args, device):
    main_process = dist.get_rank() == 0
    train_loader = make_loader(make_split(20_000, 0), args.batch_size, shuffle=True)
    eval_loader = make_loader(make_split(2_000, 1), 64, shuffle=False)
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    model = DDP(net, device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    total = args.epochs * len(train_loader)
    bar = tqdm(total=total, disable=not main_process)
    completed = 0
    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            bar.update(1)
            completed += 1
            if completed % args.eval_every == 0:
                accuracy = evaluate(model, eval_loader, device)
                bar.set_postfix(loss=f"{loss.item():.3f}", acc=f"{accuracy:.3f}")
    bar.close()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    train(Args(), torch.device("cuda", local_rank))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
