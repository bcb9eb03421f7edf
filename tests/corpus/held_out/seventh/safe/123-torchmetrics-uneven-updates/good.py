import torch
import torch.distributed as dist
from torchmetrics import MeanMetric
from torchmetrics.classification import BinaryAccuracy


class Meters:
    def __init__(self):
        self.loss, self.acc = MeanMetric(), BinaryAccuracy()

    def update(self, probs, target):
        loss = torch.nn.functional.binary_cross_entropy(probs, target.float())
        self.loss.update(loss, weight=len(target))
        if target.any():
            self.acc.update(probs, target)

    def compute(self):
        values = {"loss": self.loss.compute(), "acc": self.acc.compute()}
        self.loss.reset()
        self.acc.reset()
        return values


def main():
    dist.init_process_group("gloo")
    rank, meters = dist.get_rank(), Meters()
    gen = torch.Generator().manual_seed(rank)
    for epoch in range(2):
        for _ in range(2 + rank):  # update() is local, so the counts may differ
            probs = torch.rand(8, generator=gen)
            meters.update(probs, torch.randint(0, 2, (8,), generator=gen))
        values = meters.compute()
        if rank == 0:
            print(epoch, {name: round(v.item(), 3) for name, v in values.items()})
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
