import os
import tempfile

import ray.train
import ray.train.torch
import torch
from ray.train import Checkpoint, ScalingConfig
from ray.train.torch import TorchTrainer


def load(net, optimizer):
    found = ray.train.get_checkpoint()
    if found is None:
        return 0
    with found.as_directory() as folder:
        state = torch.load(os.path.join(folder, "state.pt"))
    net.module.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1


def train_func(config):
    net = ray.train.torch.prepare_model(torch.nn.Linear(10, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=config["lr"])
    start = load(net, optimizer)
    for epoch in range(start, config["epochs"]):
        for _ in range(20):
            x = torch.randn(32, 10)
            loss = (net(x).squeeze(1) - x.sum(1)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if ray.train.get_context().get_world_rank() == 0:
            with tempfile.TemporaryDirectory() as folder:
                state = {"net": net.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                torch.save(state, os.path.join(folder, "state.pt"))
                ray.train.report({"loss": loss.item()}, checkpoint=Checkpoint.from_directory(folder))
        else:
            ray.train.report({"loss": loss.item()}, checkpoint=None)


def main():
    trainer = TorchTrainer(
        train_func,
        train_loop_config={"lr": 1e-3, "epochs": 5},
        scaling_config=ScalingConfig(num_workers=4),
    )
    print(trainer.fit().metrics)


if __name__ == "__main__":
    main()
