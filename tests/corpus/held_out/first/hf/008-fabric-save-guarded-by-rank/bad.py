import argparse
from pathlib import Path

import lightning as L
import torch
from lightning.fabric.strategies import FSDPStrategy
from torch.utils.data import DataLoader, TensorDataset


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=4)
    p.add_argument("--strategy", choices=["ddp", "fsdp"], default="fsdp")
    p.add_argument("--width", type=int, default=512)
    p.add_argument("--iters", type=int, default=1000)
    p.add_argument("--save-interval", type=int, default=200)
    p.add_argument("--out", type=Path, default=Path("out/fabric"))
    return p.parse_args()


def strategy_of(args):
    if args.strategy == "fsdp":
        return FSDPStrategy(auto_wrap_policy={Block})
    return args.strategy


def train(fabric, args, state, loader):
    batches = iter(loader)
    while state["iter"] < args.iters:
        try:
            (x,) = next(batches)
        except StopIteration:
            batches = iter(loader)
            (x,) = next(batches)
        loss = (state["model"](x) - x.flip(-1)).square().mean()
        fabric.backward(loss)
        state["optimizer"].step()
        state["optimizer"].zero_grad()
        state["iter"] += 1
        if fabric.is_global_zero:
            if state["iter"] % 50 == 0:
                print(state["iter"], loss.item())
            if state["iter"] % args.save_interval == 0:
                fabric.save(args.out / f"iter-{state['iter']:06d}.ckpt", state)


def main():
    args = parse_args()
    fabric = L.Fabric(devices=args.devices, strategy=strategy_of(args), precision="bf16-mixed")
    fabric.launch()
    fabric.seed_everything(5)
    with fabric.init_module():
        model = torch.nn.Sequential(*[Block(args.width) for _ in range(6)])
    model = fabric.setup_module(model)
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=1e-4))
    loader = fabric.setup_dataloaders(DataLoader(TensorDataset(torch.randn(8192, args.width)), batch_size=16))
    train(fabric, args, {"model": model, "optimizer": optimizer, "iter": 0}, loader)


if __name__ == "__main__":
    main()
