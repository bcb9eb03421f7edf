import os
import tempfile

import torch
from ray import train
from ray.train import Checkpoint, CheckpointConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch.utils.data import DataLoader, TensorDataset


def house_prices(count=3000):
    gen = torch.Generator().manual_seed(0)
    x = torch.randn(count, 13, generator=gen)
    return TensorDataset(x, (x @ torch.randn(13, 1, generator=gen)).tanh())


def save_to(folder, model, optimizer, epoch):
    inner = getattr(model, "module", model)
    torch.save(
        {"model": inner.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},
        os.path.join(folder, "state.pt"),
    )


def resume(model, optimizer):
    checkpoint = train.get_checkpoint()
    if checkpoint is None:
        return 0
    with checkpoint.as_directory() as folder:
        state = torch.load(os.path.join(folder, "state.pt"), map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1


def train_loop_per_worker(config):
    net = torch.nn.Sequential(torch.nn.Linear(13, config["width"]), torch.nn.ReLU(), torch.nn.Linear(config["width"], 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=config["lr"])
    first = resume(net, optimizer)
    model = prepare_model(net)
    loader = prepare_data_loader(DataLoader(house_prices(), batch_size=64, shuffle=True))
    context = train.get_context()
    for epoch in range(first, config["epochs"]):
        if context.get_world_size() > 1:
            loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        metrics = {"loss": loss.item(), "epoch": epoch}
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if context.get_world_rank() == 0:
                save_to(folder, model, optimizer, epoch)
                checkpoint = Checkpoint.from_directory(folder)
            train.report(metrics, checkpoint=checkpoint)


def main():
    trainer = TorchTrainer(
        train_loop_per_worker,
        train_loop_config={"width": 64, "lr": 1e-3, "epochs": 10},
        scaling_config=ScalingConfig(num_workers=4),
        run_config=RunConfig(name="houses", checkpoint_config=CheckpointConfig(num_to_keep=2)),
    )
    print(trainer.fit().metrics)


if __name__ == "__main__":
    main()
