"""Searches for hyper-parameters: a trial is its process's own, so what its pruner says is known to that rank alone."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG104", "SPG205", "SPG305", "SPG401")


def test_pruning_by_ones_own_trial() -> None:
    """The verdict of this rank's trial ends its training, by an exception or by leaving the loop."""
    assert agree(
        """
        import optuna
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def objective(trial, net, loader):
            model = DDP(net)
            for epoch in range(3):
                for x in loader:
                    model(x).backward()
                if trial is not None and trial.should_prune():
                    raise optuna.TrialPruned()  # SPG205

        def stops(trial: optuna.Trial, net, loader):
            model = DDP(net)
            for epoch in range(3):
                for x in loader:
                    model(x).backward()
                trial.report(1.0, epoch)
                if trial.should_prune():
                    break  # SPG102

        """,
        *RULES,
    )


def test_a_shared_verdict_prunes_on_all_ranks() -> None:
    """The verdict is sent as a tensor or an object, the trial is the one for all ranks, or no rank meets another."""
    assert agree(
        """
        import optuna
        import torch
        import torch.distributed as dist
        from optuna.integration import TorchDistributedTrial
        from torch.nn.parallel import DistributedDataParallel as DDP

        def told(trial, net, loader):
            model = DDP(net)
            for epoch in range(3):
                for x in loader:
                    model(x).backward()
                prune = torch.zeros(1)
                if trial is not None:
                    prune.fill_(float(trial.should_prune()))
                dist.broadcast(prune, src=0)
                if prune.item() > 0:
                    if trial is not None:
                        raise optuna.TrialPruned()
                    return

        def shared(single, net, loader):
            trial = TorchDistributedTrial(single)
            model = DDP(net)
            for epoch in range(3):
                for x in loader:
                    model(x).backward()
                if trial.should_prune():
                    raise optuna.exceptions.TrialPruned()

        def agreed(trial, net, loader):
            model = DDP(net)
            for epoch in range(3):
                for x in loader:
                    model(x).backward()
                box = [trial.should_prune() if dist.get_rank() == 0 else None]
                dist.broadcast_object_list(box, src=0)
                if box[0]:
                    raise optuna.TrialPruned()

        def alone(trial, net, loader):
            for epoch in range(3):
                for x in loader:
                    net(x).backward()
                if trial.should_prune():
                    raise optuna.TrialPruned()
        """,
        *RULES,
    )
