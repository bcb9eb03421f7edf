import argparse

import torch
import wandb
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch.utils.data import DataLoader


def sweep_values(accelerator, base):
    cell = [dict(base)]
    if accelerator.is_main_process:
        run = wandb.init(project="sweeps", config=base)
        cell = [{**base, **dict(run.config)}]
    broadcast_object_list(cell, from_process=0)
    return argparse.Namespace(**cell[0])


def main(net, data):
    accelerator = Accelerator()
    cfg = sweep_values(accelerator, {"epochs": 2, "lr": 1e-3, "batch": 8})
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
    net, opt, loader = accelerator.prepare(net, opt, DataLoader(data, batch_size=cfg.batch, shuffle=True))
    for epoch in range(cfg.epochs):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(net(x), y)
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
    final = accelerator.reduce(loss.detach(), "mean")
    if accelerator.is_main_process:
        wandb.log({"final": final.item()})
        wandb.finish()
