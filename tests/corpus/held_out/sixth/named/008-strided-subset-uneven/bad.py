"""Splits the data by stride."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset


class Sines(Dataset):
    def __init__(self, n):
        self.phase = torch.linspace(0, 6.28, n)

    def __len__(self):
        return len(self.phase)

    def __getitem__(self, i):
        t = torch.linspace(0, 1, 64)
        return torch.sin(8 * t + self.phase[i]), self.phase[i].sin().unsqueeze(0)


def my_part(dataset):
    rank, world = dist.get_rank(), dist.get_world_size()
    usable = len(dataset)
    return Subset(dataset, range(rank, usable, world))


def main(epochs=3):
    dist.init_process_group("gloo")
    loader = DataLoader(my_part(Sines(961)), batch_size=4, shuffle=True)
    model = DDP(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)))
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        running = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        print(f"[{dist.get_rank()}] epoch {epoch}: {running / len(loader):.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
