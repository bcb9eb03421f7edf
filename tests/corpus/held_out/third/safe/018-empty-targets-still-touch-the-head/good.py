from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(10, 8)
        self.labels = nn.Embedding(4, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, image, targets):
        if len(targets) == 0:
            query, weight = torch.zeros(1, dtype=torch.long), 0.0
        else:
            query, weight = targets, 1.0
        noisy = self.head(self.labels(query)).abs().mean()
        return self.head(self.body(image)).pow(2).mean() + weight * noisy


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    net = DDP(Detector())
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for it in range(6):
        boxes = 0 if (rank + it) % 3 == 0 else 2
        loss = net(torch.randn(2, 10), torch.randint(0, 4, (boxes,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
    probe = net.module.head.weight.detach().clone()
    dist.broadcast(probe, src=0)
    assert torch.equal(probe, net.module.head.weight)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
