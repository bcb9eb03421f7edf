from datetime import timedelta

import torch
import torch.distributed as dist


class Confusion:
    def __init__(self, classes):
        self.table = torch.zeros(classes, classes)

    def update(self, logits, labels):
        guesses = logits.argmax(1)
        flat = labels * self.table.shape[1] + guesses
        self.table += torch.bincount(flat, minlength=self.table.numel()).reshape(self.table.shape)

    def combine(self):
        dist.all_reduce(self.table)


def worst(table, count):
    share = table.diagonal() / table.sum(1).clamp(min=1)
    order = share.argsort()[:count]
    picked = torch.gather(share, 0, order)
    marks = torch.zeros_like(share).scatter_(0, order, 1.0)
    return order.tolist(), picked.tolist(), torch.all(marks >= 0).item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    confusion = Confusion(6)
    for _ in range(4):
        labels = torch.randint(0, 6, (32,), generator=gen)
        confusion.update(torch.randn(32, 6, generator=gen), labels)
    confusion.combine()
    if dist.get_rank() == 0:
        print(worst(confusion.table, count=2))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
