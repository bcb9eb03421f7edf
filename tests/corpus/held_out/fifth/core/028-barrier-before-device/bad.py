import os
import tarfile
from pathlib import Path
from urllib.request import urlretrieve

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

URL = "https://example.org/data/cifar-tensors.tar.gz"


def setup_distributed():
    dist.init_process_group(backend="nccl")
    return dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])


def fetch_dataset(root, rank):
    root = Path(root)
    if rank == 0 and not (root / "train.pt").exists():
        root.mkdir(parents=True, exist_ok=True)
        archive, _ = urlretrieve(URL, root / "cifar.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(root)
        print("dataset ready", flush=True)
    dist.barrier()
    blob = torch.load(root / "train.pt")
    return TensorDataset(blob["x"].float() / 255, blob["y"])


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU()
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.features(x).mean(dim=(2, 3)))


def build_engine(local_rank):
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    model = DDP(SmallNet().to(device), device_ids=[local_rank])
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3), device


def main():
    rank, world, local_rank = setup_distributed()
    dataset = fetch_dataset(os.environ.get("DATA", "./data"), rank)
    model, optimizer, device = build_engine(local_rank)
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank)
    loader = DataLoader(dataset, batch_size=128, sampler=sampler, num_workers=2)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
