import os

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset


class Experiment:
    def __init__(self, fabric: Fabric, cache: str = "prepared.pt"):
        self.fabric = fabric
        self.cache = cache

    def prepare(self, rows: int = 4096):
        x = torch.randn(rows, 24)
        torch.save((x, x @ torch.randn(24, 3)), self.cache)

    def make_dataset(self):
        if self.fabric.global_rank == 0:
            if not os.path.exists(self.cache):
                self.prepare()
        self.fabric.barrier()
        return TensorDataset(*torch.load(self.cache))

    def fit(self, epochs: int = 5):
        dataset = self.make_dataset()
        model = torch.nn.Sequential(torch.nn.Linear(24, 48), torch.nn.Mish(), torch.nn.Linear(48, 3))
        optimizer = torch.optim.NAdam(model.parameters())
        model, optimizer = self.fabric.setup(model, optimizer)
        loader = self.fabric.setup_dataloaders(DataLoader(dataset, batch_size=64, shuffle=True))
        for epoch in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(x), y)
                self.fabric.backward(loss)
                optimizer.step()
            mean = self.fabric.all_reduce(loss.detach(), reduce_op="mean")
            self.fabric.print(f"epoch {epoch}: {mean.item():.4f}")


def main():
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(1)
    Experiment(fabric).fit()


if __name__ == "__main__":
    main()
