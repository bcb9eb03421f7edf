import os
import tempfile

import ray.train
import ray.train.torch
import torch
import torch.distributed as dist
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from torch import nn
from torch.utils.data import DataLoader, random_split

from features import PriceDataset


def build(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(32, width), nn.GELU(), nn.Linear(width, 1))


def validate(model, loader) -> torch.Tensor:
    model.eval()
    total = torch.zeros((), device=ray.train.torch.get_device())
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model.module(x).squeeze(-1), y)
    model.train()
    return total / len(loader)


def train_func(config: dict) -> None:
    dataset = PriceDataset(config["path"])
    train_set, val_set = random_split(dataset, [0.9, 0.1], generator=torch.Generator().manual_seed(0))
    train_loader = ray.train.torch.prepare_data_loader(DataLoader(train_set, batch_size=config["bs"], shuffle=True))
    val_loader = ray.train.torch.prepare_data_loader(DataLoader(val_set, batch_size=config["bs"]))
    model = ray.train.torch.prepare_model(build(config["width"]))
    opt = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    best = float("inf")

    for epoch in range(config["epochs"]):
        if hasattr(train_loader.sampler, "set_epoch"):
            train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()

        val = validate(model, val_loader)
        dist.all_reduce(val, op=dist.ReduceOp.AVG)
        if val.item() < best:
            best = val.item()
            with tempfile.TemporaryDirectory() as tmp:
                checkpoint = None
                if ray.train.get_context().get_world_rank() == 0:
                    torch.save(model.module.state_dict(), os.path.join(tmp, "model.pt"))
                    checkpoint = Checkpoint.from_directory(tmp)
                ray.train.report({"val_mse": best, "epoch": epoch}, checkpoint=checkpoint)


if __name__ == "__main__":
    trainer = TorchTrainer(
        train_func,
        train_loop_config={"path": "/data/prices.npz", "bs": 256, "width": 512, "lr": 1e-3, "epochs": 30},
        scaling_config=ScalingConfig(num_workers=4, use_gpu=True),
        run_config=RunConfig(name="prices"),
    )
    print(trainer.fit().metrics)
