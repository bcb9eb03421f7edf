import tarfile
from pathlib import Path

import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset


class TileDataset(Dataset):
    def __init__(self, root):
        self.files = sorted(Path(root).glob("*.pt"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        item = torch.load(self.files[i])
        return item["image"], item["label"]


class Experiment:
    def __init__(self, fabric, archive, root, lr=1e-3):
        self.fabric = fabric
        self.archive = archive
        self.root = Path(root)
        self.lr = lr

    def unpack(self):
        self.root.mkdir(parents=True, exist_ok=True)
        with tarfile.open(self.archive) as tar:
            tar.extractall(self.root)

    def make_dataset(self):
        if self.fabric.global_rank == 0:
            self.unpack()
        self.fabric.barrier()
        return TileDataset(self.root)

    def run(self, epochs):
        dataset = self.make_dataset()
        loader = self.fabric.setup_dataloaders(DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4))
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
        net(torch.zeros(1, 3, 64, 64))
        model, optim = self.fabric.setup(net, torch.optim.SGD(net.parameters(), lr=self.lr))
        for epoch in range(epochs):
            for x, y in loader:
                optim.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x), y)
                self.fabric.backward(loss)
                optim.step()
            self.fabric.print(f"epoch {epoch} loss {loss.item():.3f}")
        self.fabric.save("tiles.ckpt", {"model": model, "optim": optim})


if __name__ == "__main__":
    fabric = L.Fabric(accelerator="cuda", devices=4, strategy="ddp")
    fabric.launch()
    Experiment(fabric, "tiles.tar", "data/tiles").run(epochs=10)
