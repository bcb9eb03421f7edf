import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


class Patience:
    """Counts the steps without progress of the local loss."""

    def __init__(self, patience: int, min_delta: float):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def exhausted(self, value: float) -> bool:
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def make_data(n=4096):
    gen = torch.Generator().manual_seed(11)
    x = torch.randn(n, 20, generator=gen)
    return TensorDataset(x, x @ torch.arange(20.0))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--patience", type=int, default=40)
    args = ap.parse_args()
    acc = Accelerator(mixed_precision="bf16")
    set_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, opt, loader = acc.prepare(model, opt, DataLoader(make_data(), batch_size=64, shuffle=True))
    stopper = Patience(args.patience, 1e-3)
    stop = False
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x).squeeze(1), y)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            if stopper.exhausted(loss.item()):
                acc.set_trigger()
            if acc.check_trigger():
                stop = True
                break
        mean = acc.gather(loss.detach()[None]).mean()
        acc.print(f"epoch {epoch} loss {mean.item():.4f}")
        if stop:
            break
    acc.wait_for_everyone()
    if acc.is_main_process:
        acc.save(acc.unwrap_model(model).state_dict(), "model.bin")
    acc.end_training()


if __name__ == "__main__":
    main()
