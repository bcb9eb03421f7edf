"""Training on fixed-size chunks cut out of variable-length utterances."""
import os
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ChunkIterFactory:
    def __init__(self, utterances, chunk_length, batch_size, rank, world_size):
        self.utterances = utterances[rank::world_size]
        self.chunk_length = chunk_length
        self.batch_size = batch_size

    def build_iter(self, epoch):
        order = list(self.utterances)
        random.Random(epoch).shuffle(order)
        cache = []
        for path, num_frames in order:
            if num_frames < self.chunk_length:
                continue
            feats = torch.randn(num_frames, 80)
            cache.extend(feats[: num_frames - num_frames % self.chunk_length].split(self.chunk_length))
            while len(cache) >= self.batch_size:
                yield torch.stack(cache[: self.batch_size])
                cache = cache[self.batch_size :]


def until_first_end(iterator, device):
    has_next = torch.ones(1, device=device)
    while True:
        batch = next(iterator, None)
        has_next.fill_(0.0 if batch is None else 1.0)
        dist.all_reduce(has_next, op=dist.ReduceOp.MIN)
        if has_next.item() == 0:
            return
        yield batch


def train_one_epoch(model, optimizer, iterator, device):
    model.train()
    loss_sum, count = 0.0, 0
    for batch in until_first_end(iterator, device):
        batch = batch.to(device)
        recon = model(batch)
        loss = nn.functional.l1_loss(recon, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item()
        count += 1
    stats = torch.tensor([loss_sum, float(count)], device=device)
    dist.all_reduce(stats)
    return (stats[0] / stats[1].clamp(min=1)).item()


def read_scp(path):
    with open(path) as f:
        return [(name, int(frames)) for name, frames in (line.split() for line in f)]


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    factory = ChunkIterFactory(
        read_scp("dump/train/num_frames.scp"), 150, 16, dist.get_rank(), dist.get_world_size()
    )
    net = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 80)).to(device)
    model = DDP(net, device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(20):
        mean = train_one_epoch(model, optimizer, factory.build_iter(epoch), device)
        if dist.get_rank() == 0:
            print(f"{epoch}epoch: loss={mean:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
