import os
import tempfile

import ray.train
import ray.train.torch
import torch
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer


def train_func(config):
    net = ray.train.torch.prepare_model(torch.nn.Linear(6, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"])
    rank = ray.train.get_context().get_world_rank()
    for epoch in range(config["epochs"]):
        x = torch.randn(64, 6)
        loss = (net(x).squeeze(1) - x.mean(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics = {"epoch": epoch, "loss": loss.item()}
        if rank == 0:
            with tempfile.TemporaryDirectory() as folder:
                torch.save(net.module.state_dict(), os.path.join(folder, "net.pt"))
                ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder))
        else:
            ray.train.report(metrics, checkpoint=None)


def main():
    trainer = TorchTrainer(
        train_func,
        train_loop_config={"lr": 0.05, "epochs": 4},
        scaling_config=ScalingConfig(num_workers=4),
        run_config=RunConfig(name="both-arms"),
    )
    print(trainer.fit().checkpoint)


if __name__ == "__main__":
    main()
