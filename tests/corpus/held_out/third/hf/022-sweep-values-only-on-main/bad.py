import argparse

import torch
import wandb
from accelerate import Accelerator
from torch.utils.data import DataLoader


def defaults():
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=3)
    cli.add_argument("--learning_rate", type=float, default=1e-4)
    cli.add_argument("--batch_size", type=int, default=8)
    cli.add_argument("--clip", type=float, default=1.0)
    return cli.parse_args()


def settings(accelerator, args):
    values = dict(vars(args))
    if accelerator.is_main_process:
        run = wandb.init(project="tav", config=values)
        values.update(dict(run.config))
    return argparse.Namespace(**values)


def train(accelerator, cfg, net, data):
    loader = DataLoader(data, batch_size=cfg.batch_size, shuffle=True)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.learning_rate)
    net, opt, loader = accelerator.prepare(net, opt, loader)
    for epoch in range(cfg.epochs):
        for text, audio, video, label in loader:
            loss = torch.nn.functional.cross_entropy(net(text, audio, video), label)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(net.parameters(), cfg.clip)
            opt.step()
            opt.zero_grad()
        mean = accelerator.reduce(loss.detach(), "mean")
        if accelerator.is_main_process:
            wandb.log({"epoch": epoch, "loss": mean.item()})


def main(net, data):
    accelerator = Accelerator()
    cfg = settings(accelerator, defaults())
    train(accelerator, cfg, net, data)
    if accelerator.is_main_process:
        wandb.finish()
