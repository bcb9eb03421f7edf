import os
import tempfile

import ray.train
import torch
from ray.train import Checkpoint, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model


def loop(config):
    model = prepare_model(config["make_model"]())
    loader = prepare_data_loader(config["make_loader"]())
    opt = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    rank = ray.train.get_context().get_world_rank()
    for epoch in range(config["epochs"]):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with tempfile.TemporaryDirectory() as tmp:
            checkpoint = None
            if rank == 0:
                torch.save(model.module.state_dict(), os.path.join(tmp, "model.pt"))
                checkpoint = Checkpoint.from_directory(tmp)
            ray.train.report({"epoch": epoch, "loss": loss.item()}, checkpoint=checkpoint)


def main(config):
    scaling = ScalingConfig(num_workers=4, use_gpu=True)
    return TorchTrainer(loop, train_loop_config=config, scaling_config=scaling).fit()
