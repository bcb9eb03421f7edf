"""Noise injection for masked visibilities with one seed for all processes."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Visibilities(Dataset):
    def __init__(self, rank, count=512):
        self.rank = rank
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.rank * self.count + i)
        vis = torch.randn(32, generator=g)
        weight = (torch.rand(32, generator=g) > 0.3).float() * float((i // 8 + self.rank) % 3 > 0)
        return vis, weight


class NoiseInjector:
    def __init__(self, seed=None):
        self._given = seed
        self._seed = None
        self._generator = None

    @property
    def seed(self):
        if self._seed is None:
            box = [self._given]
            if box[0] is None and dist.get_rank() == 0:
                box[0] = int(torch.seed() % (1 << 31))
            dist.broadcast_object_list(box, src=0)
            self._seed = box[0]
        return self._seed

    def _make_generator(self):
        return torch.Generator().manual_seed(self.seed + dist.get_rank())

    def __call__(self, vis, weight):
        if not weight.any():
            return vis
        if self._generator is None:
            self._generator = self._make_generator()
        noise = torch.randn(vis.shape, generator=self._generator)
        return torch.where(weight > 0, vis, vis + noise)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    inject = NoiseInjector()
    loader = DataLoader(Visibilities(rank), batch_size=4)
    net = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 32))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        total = torch.zeros(1)
        for vis, weight in loader:
            noisy = inject(vis, weight)
            loss = (weight * (model(noisy) - vis).square()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: {total.item() / (len(loader) * dist.get_world_size()):.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
