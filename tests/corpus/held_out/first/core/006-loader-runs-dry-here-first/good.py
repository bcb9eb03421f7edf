import logging
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("speech")


class DurationBuckets:
    """Batches of utterances, at most `budget` frames in each."""

    def __init__(self, lengths, budget):
        self.lengths, self.budget = lengths, budget

    def __iter__(self):
        batch, frames = [], 0
        for n in self.lengths:
            if batch and frames + n > self.budget:
                yield batch
                batch, frames = [], 0
            batch.append(n)
            frames += n
        if batch:
            yield batch


def lengths_for(rank, count=400):
    gen = torch.Generator().manual_seed(rank)
    return torch.randint(50, 400, (count,), generator=gen).tolist()


def features(batch):
    return torch.randn(len(batch), 40) * (sum(batch) / len(batch) / 200)


def validate(model):
    model.eval()
    with torch.no_grad():
        total = model.module(torch.randn(32, 40)).abs().mean().reshape(1)
    dist.all_reduce(total)
    model.train()
    return total.item() / dist.get_world_size()


def train_one_epoch(model, opt, batches):
    it = iter(batches)
    step = 0
    while True:
        batch = next(it, None)
        ended = torch.tensor([int(batch is None)])
        dist.all_reduce(ended, op=dist.ReduceOp.MAX)
        if ended.item():
            break
        opt.zero_grad()
        model(features(batch)).square().mean().backward()
        opt.step()
        step += 1
    return step


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    rank = dist.get_rank()
    model = DistributedDataParallel(torch.nn.Linear(40, 8))
    opt = torch.optim.Adam(model.parameters())
    batches = DurationBuckets(lengths_for(rank), budget=2000)
    for epoch in range(3):
        steps = train_one_epoch(model, opt, batches)
        value = validate(model)
        log.info("rank %d epoch %d: %d steps, validation %.4f", rank, epoch, steps, value)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
