"""A training function that a launcher library prepares."""

import argparse
import os

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader


def training_function(config, args):
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    loader = DataLoader([torch.randn(8) for _ in range(16)], batch_size=config["batch_size"])
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(config["num_epochs"]):
        model.train()
        for _step, batch in enumerate(loader):
            loss = model(batch).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        outputs = []
        for batch in loader:
            with torch.no_grad():
                outputs.append(accelerator.gather_for_metrics(model(batch)))
        if accelerator.is_main_process:
            print(f"epoch {epoch}: {torch.cat(outputs).mean().item():.4f}", flush=True)
            write_metric(args.folder, epoch)
        accelerator.wait_for_everyone()
    accelerator.end_training()


def write_metric(folder, epoch):
    if os.environ.get("FAIL_AT") == str(epoch):
        raise OSError("no space left")
    with open(os.path.join(folder, "metrics.txt"), "a") as out:
        out.write(f"{epoch}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    args = parser.parse_args()
    training_function({"lr": 0.01, "num_epochs": 3, "batch_size": 4}, args)


if __name__ == "__main__":
    main()
