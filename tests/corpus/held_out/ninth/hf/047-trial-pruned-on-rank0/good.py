import optuna
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def objective(trial, make_net, loader, epochs=10):
    lr = [trial.suggest_float("lr", 1e-5, 1e-2, log=True) if trial else None]
    dist.broadcast_object_list(lr, src=0)
    model = DDP(make_net())
    opt = torch.optim.Adam(model.parameters(), lr=lr[0])
    for epoch in range(epochs):
        total = torch.zeros(1)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            opt.zero_grad()
            total += loss.detach()
        dist.all_reduce(total)
        prune = [False]
        if trial is not None:
            trial.report(total.item(), epoch)
            prune[0] = trial.should_prune()
        dist.broadcast_object_list(prune, src=0)
        if prune[0]:
            raise optuna.TrialPruned()
    return total.item()


def main(make_net, loader, n_trials=20):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        study = optuna.create_study(direction="minimize", pruner=optuna.pruners.MedianPruner())
        study.optimize(lambda t: objective(t, make_net, loader), n_trials=n_trials)
        print(study.best_params)
    else:
        for _ in range(n_trials):
            try:
                objective(None, make_net, loader)
            except optuna.TrialPruned:
                pass
    dist.destroy_process_group()
