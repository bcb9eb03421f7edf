"""Facts on searches for hyper-parameters: Optuna 4. A trial is its process's own unless it is told to all ranks."""

from __future__ import annotations

from .build import agreed, varying
from .fact import Fact, TypeFacts

_SHARED = "optuna_integration.TorchDistributedTrial"
_TRIAL = "optuna.trial.Trial"
_ASKED: tuple[str, ...] = (
    "suggest_float",
    "suggest_int",
    "suggest_categorical",
    "suggest_uniform",
    "suggest_loguniform",
)

FUNCTIONS: dict[str, Fact] = {
    "optuna.create_study": Fact(returns="optuna.study.Study"),
}

TYPES: dict[str, TypeFacts] = {
    "optuna.study.Study": TypeFacts(),
    _TRIAL: TypeFacts(methods={"should_prune": varying("data", certainty="likely")}),
    _SHARED: TypeFacts(
        methods={
            **{name: agreed(f"trial.{name}") for name in (*_ASKED, "should_prune")},
            "report": agreed("trial.report"),
            "set_user_attr": agreed("trial.set_user_attr"),
        },
        other=Fact(result="uniform"),
    ),
}

ALIASES: dict[str, str] = {
    "optuna.study.create_study": "optuna.create_study",
    "optuna.Study": "optuna.study.Study",
    "optuna.Trial": _TRIAL,
    "optuna.integration.TorchDistributedTrial": _SHARED,
    "optuna.integration.pytorch_distributed.TorchDistributedTrial": _SHARED,
    "optuna_integration.pytorch_distributed.TorchDistributedTrial": _SHARED,
}
