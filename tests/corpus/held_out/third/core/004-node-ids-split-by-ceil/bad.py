import math
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


class SageLayer(torch.nn.Module):
    def __init__(self, feats, hidden, classes):
        super().__init__()
        self.own = torch.nn.Linear(feats, hidden)
        self.out = torch.nn.Linear(hidden, classes)

    def forward(self, x):
        return self.out(F.relu(self.own(x)))


def run(proc_id, n_gpus, train_nid, features, labels, batch_size=1024, epochs=3):
    mine = torch.split(train_nid, math.ceil(len(train_nid) / n_gpus))[proc_id]
    loader = DataLoader(mine, batch_size=batch_size, shuffle=True, drop_last=False)
    net = DDP(SageLayer(features.shape[1], 16, 4))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for seeds in loader:
            loss = F.cross_entropy(net(features[seeds]), labels[seeds])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if proc_id == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    torch.manual_seed(0)
    nodes = torch.arange(4097)
    features, labels = torch.randn(4097, 12), torch.randint(0, 4, (4097,))
    run(dist.get_rank(), dist.get_world_size(), nodes, features, labels)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
