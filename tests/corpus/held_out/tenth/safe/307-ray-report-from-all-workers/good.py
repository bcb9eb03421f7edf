import os
import tempfile

import ray.train
import torch
from ray.train import Checkpoint, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model


def train_loop(config):
    model = prepare_model(torch.nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=config["lr"])
    chief = ray.train.get_context().get_world_rank() == 0
    for epoch in range(config["epochs"]):
        x = torch.randn(32, 8)
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if chief:
                plain = getattr(model, "module", model)
                torch.save(plain.state_dict(), os.path.join(folder, "model.pt"))
                checkpoint = Checkpoint.from_directory(folder)
            ray.train.report({"epoch": epoch, "loss": loss.item()}, checkpoint=checkpoint)


if __name__ == "__main__":
    trainer = TorchTrainer(
        train_loop,
        train_loop_config={"lr": 0.05, "epochs": 4},
        scaling_config=ScalingConfig(num_workers=2, use_gpu=False),
    )
    print(trainer.fit().metrics)
