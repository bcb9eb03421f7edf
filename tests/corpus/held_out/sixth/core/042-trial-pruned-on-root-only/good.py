import os

import optuna
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

EPOCHS, N_TRIALS = 20, 50


def suggest(trial):
    box = [None]
    if trial is not None:
        box[0] = {
            "lr": trial.suggest_float("lr", 1e-5, 1e-1, log=True),
            "width": trial.suggest_int("width", 32, 512, log=True),
            "dropout": trial.suggest_float("dropout", 0.0, 0.5),
        }
    dist.broadcast_object_list(box, src=0)
    return box[0]


def accuracy(model, loader, device):
    model.eval()
    hits = torch.zeros(2, device=device)
    with torch.no_grad():
        for x, y in loader:
            hits[0] += (model(x.to(device)).argmax(1).cpu() == y).sum()
            hits[1] += len(y)
    dist.all_reduce(hits)
    model.train()
    return (hits[0] / hits[1]).item()


def objective(trial, loaders, device):
    hp = suggest(trial)
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(784, hp["width"]), nn.ReLU(), nn.Dropout(hp["dropout"]), nn.Linear(hp["width"], 10)
    )
    model = DDP(net.to(device), device_ids=[device.index])
    optim = torch.optim.SGD(model.parameters(), lr=hp["lr"], momentum=0.9)
    train_loader, val_loader = loaders
    acc = 0.0
    for epoch in range(EPOCHS):
        train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optim.zero_grad()
            loss.backward()
            optim.step()
        acc = accuracy(model.module, val_loader, device)
        prune = torch.zeros(1, device=device)
        if trial is not None:
            trial.report(acc, epoch)
            prune.fill_(float(trial.should_prune()))
        dist.broadcast(prune, src=0)
        if prune.item() > 0:
            if trial is not None:
                raise optuna.TrialPruned()
            return acc
    return acc


def main(make_loaders):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    loaders = make_loaders(dist.get_rank(), dist.get_world_size())
    if dist.get_rank() == 0:
        study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner())
        study.optimize(lambda t: objective(t, loaders, device), n_trials=N_TRIALS)
        print(study.best_trial.params)
    else:
        for _ in range(N_TRIALS):
            objective(None, loaders, device)
    dist.destroy_process_group()
