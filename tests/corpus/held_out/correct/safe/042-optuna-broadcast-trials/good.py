"""One Optuna study on rank 0; the other ranks follow its trials."""
import os
from datetime import timedelta

import optuna
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

N_TRIALS, EPOCHS, BATCHES = 40, 12, 100


class Pruned(Exception):
    """Raised by all ranks of a trial together."""


def share(value):
    box = [value if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def propose(trial):
    return {
        "lr": trial.suggest_float("lr", 1e-5, 1e-1, log=True),
        "width": trial.suggest_categorical("width", [64, 128, 256]),
        "depth": trial.suggest_int("depth", 1, 4),
        "dropout": trial.suggest_float("dropout", 0.0, 0.5),
    }


def build(params):
    layers, d = [], 20
    for _ in range(params["depth"]):
        layers += [nn.Linear(d, params["width"]), nn.ReLU(), nn.Dropout(params["dropout"])]
        d = params["width"]
    return nn.Sequential(*layers, nn.Linear(d, 2))


def make_batch(g, n=64):
    x = torch.randn(n, 20, generator=g)
    y = ((x[:, :10] * x[:, 10:]).sum(1) > 0).long()
    return x, y


def validate(net, device):
    net.eval()
    g = torch.Generator().manual_seed(999 + dist.get_rank())
    score = torch.zeros(2, device=device)
    with torch.no_grad():
        for _ in range(10):
            x, y = make_batch(g, 256)
            score[0] += (net(x.to(device)).argmax(1).cpu() == y).sum()
            score[1] += len(y)
    dist.all_reduce(score)
    net.train()
    return (score[0] / score[1]).item()


def run_trial(params, device, trial=None):
    """`trial` is the Optuna object on rank 0 and None elsewhere."""
    torch.manual_seed(0)
    net = build(params).to(device)
    model = DDP(net, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=params["lr"])
    g = torch.Generator().manual_seed(dist.get_rank())
    best = 0.0
    for epoch in range(EPOCHS):
        for _ in range(BATCHES):
            x, y = make_batch(g)
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = validate(net, device)
        best = max(best, accuracy)
        verdict = False
        if trial is not None:
            trial.report(accuracy, epoch)
            verdict = trial.should_prune()
        if share(verdict):
            raise Pruned(f"epoch {epoch}")
    return best


def lead(device):
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=1),
                                pruner=optuna.pruners.MedianPruner(n_warmup_steps=3))
    for _ in range(N_TRIALS):
        trial = study.ask()
        params = share(propose(trial))
        try:
            value = run_trial(params, device, trial)
        except Pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, value)
    share(None)
    print("best:", study.best_value, study.best_params)


def follow(device):
    while (params := share(None)) is not None:
        try:
            run_trial(params, device)
        except Pruned:
            continue


def main():
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if use_cuda else torch.device("cpu")
    if use_cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if use_cuda else "gloo", timeout=timedelta(minutes=20))
    if dist.get_rank() == 0:
        lead(device)
    else:
        follow(device)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
