"""Ray Train worker loop: a report from every worker, the checkpoint from one."""
import os
import tempfile

import ray
import torch
import torch.distributed as dist
import torch.nn as nn
from ray import train
from ray.train import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model
from torch.utils.data import DataLoader, TensorDataset


def spirals(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.rand(n, generator=g) * 9
    label = torch.randint(0, 2, (n,), generator=g)
    angle = t + label * 3.1416
    xy = torch.stack([t * angle.cos(), t * angle.sin()], 1) + 0.1 * torch.randn(n, 2, generator=g)
    return TensorDataset(xy, label)


def build_model(width):
    return nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))


def bare(model):
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model


def restore(model, optimizer):
    """All workers get the same checkpoint object from the trainer."""
    checkpoint = train.get_checkpoint()
    if checkpoint is None:
        return 0
    with checkpoint.as_directory() as folder:
        blob = torch.load(os.path.join(folder, "state.pt"), map_location="cpu")
    model.load_state_dict(blob["model"])
    optimizer.load_state_dict(blob["optimizer"])
    return blob["epoch"] + 1


@torch.no_grad()
def accuracy(model, loader, device):
    counts = torch.zeros(2, device=device)
    for x, y in loader:
        counts[0] += (bare(model)(x).argmax(1) == y).sum()
        counts[1] += y.numel()
    if dist.is_initialized():
        dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def worker(config):
    device = train.torch.get_device()
    context = train.get_context()
    torch.manual_seed(config["seed"])
    net = build_model(config["width"]).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=config["lr"])
    first = restore(net, optimizer)
    model = prepare_model(net)
    train_loader = prepare_data_loader(DataLoader(spirals(20000, 1), config["batch"], shuffle=True))
    valid_loader = prepare_data_loader(DataLoader(spirals(2000, 2), 256))

    for epoch in range(first, config["epochs"]):
        if context.get_world_size() > 1:
            train_loader.sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        metrics = {"epoch": epoch, "accuracy": accuracy(model, valid_loader, device), "loss": loss.item()}

        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if context.get_world_rank() == 0:
                torch.save({"model": bare(model).state_dict(), "optimizer": optimizer.state_dict(),
                            "epoch": epoch}, os.path.join(folder, "state.pt"))
                checkpoint = Checkpoint.from_directory(folder)
            train.report(metrics, checkpoint=checkpoint)
        if metrics["accuracy"] > config["target"]:
            break


def main():
    ray.init()
    gpus = int(ray.cluster_resources().get("GPU", 0))
    trainer = TorchTrainer(
        worker,
        train_loop_config={"seed": 3, "width": 128, "lr": 2e-3, "batch": 128, "epochs": 40, "target": 0.995},
        torch_config=TorchConfig(timeout_s=900),
        scaling_config=ScalingConfig(num_workers=max(gpus, 2), use_gpu=gpus >= 2),
        run_config=RunConfig(
            name="spirals",
            checkpoint_config=CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="accuracy"),
            failure_config=FailureConfig(max_failures=2)))
    result = trainer.fit()
    print(result.metrics)
    ray.shutdown()


if __name__ == "__main__":
    main()
