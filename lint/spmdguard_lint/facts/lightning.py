"""Facts on Lightning, PyTorch Lightning and Fabric (read from 2.6)."""

from __future__ import annotations

from .build import (
    BARRIER,
    IS_MAIN,
    LOCAL_RANK,
    MAIN_DECORATOR,
    MODULE,
    NODE_RANK,
    PURE,
    RANK,
    SHARDS,
    UNIFORM,
    WORLD_SIZE,
    agreed,
    exchanged,
    lifecycle,
    local,
)
from .conventions import EPOCH_ENDS, SETTING_UP
from .fact import Arg, Fact, TypeFacts

TRAINER = "pytorch_lightning.Trainer"
LIGHTNING_MODULE = "pytorch_lightning.LightningModule"
CALLBACK = "pytorch_lightning.Callback"
STRATEGY = "pytorch_lightning.strategies.Strategy"
FABRIC = "lightning_fabric.Fabric"
LOGGER = "pytorch_lightning.loggers.Logger"
_WRAPPED = "lightning_fabric.wrappers._FabricModule"

_G1 = Arg(1, "group")
_HOOK = (TRAINER, LIGHTNING_MODULE)
_BATCH_HOOK = (TRAINER, LIGHTNING_MODULE, "", "")
_BATCH_END_HOOK = (TRAINER, LIGHTNING_MODULE, "", "", "")
_FORWARD = exchanged("DDP.forward", event="synced-forward", certainty="likely")

_SHARED_CALLS: dict[str, Fact] = {
    "barrier": BARRIER,
    "broadcast": agreed("broadcast", root=Arg(1, "src")),
    "all_gather": agreed("all_gather", _G1),
    "all_reduce": agreed("all_reduce", _G1),
    "backward": agreed("backward", event="backward"),
}

_STRATEGY_CALLS: dict[str, Fact] = {
    **_SHARED_CALLS,
    "reduce": agreed("all_reduce", _G1),
    "reduce_boolean_decision": agreed("all_reduce", event="reduce-boolean"),
    "save_checkpoint": agreed("save_checkpoint", event="checkpoint-save", raises_local=True),
    "load_checkpoint": local("read"),
    "lightning_module_state_dict": exchanged("lightning_module_state_dict", certainty="possible"),
    "remove_checkpoint": local("remove", main_only="main"),
}

_IDENTITY: dict[str, Fact] = {
    "is_global_zero": IS_MAIN,
    "global_rank": RANK,
    "local_rank": LOCAL_RANK,
    "node_rank": NODE_RANK,
    "world_size": WORLD_SIZE,
}

# What was logged is computed when it is read, between the last batch and the end of the epoch: elsewhere it is kept.
_METRICS = Fact(
    op="trainer.metrics",
    kind="collective",
    certainty="likely",
    told=r"\bsync_dist\s*=\s*(?!False)|\btorchmetrics\b",
    during=EPOCH_ENDS,
)
# Makes the loaders where nothing has yet, which meets.
_STEPPING_BATCHES = agreed(
    "trainer.estimated_stepping_batches",
    certainty="likely",
    during=SETTING_UP,
)

FUNCTIONS: dict[str, Fact] = {
    "lightning_utilities.core.rank_zero.rank_zero_only": MAIN_DECORATOR,
    "lightning_utilities.core.rank_zero.rank_zero_info": PURE,
    "lightning_utilities.core.rank_zero.rank_zero_warn": PURE,
    "lightning_utilities.core.rank_zero.rank_zero_debug": PURE,
    "lightning_utilities.core.rank_zero.rank_zero_deprecation": PURE,
    "lightning_utilities.core.rank_zero.rank_prefixed_message": PURE,
    "pytorch_lightning.seed_everything": Fact(event="seed-all", result="uniform"),
    "lightning_fabric.utilities.distributed._sync_ddp_if_available": agreed("all_reduce", _G1),
    "lightning_fabric.utilities.distributed._sync_ddp": agreed("all_reduce", _G1),
    "lightning_fabric.utilities.distributed._gather_all_tensors": agreed("all_gather", _G1),
    "lightning_fabric.utilities.distributed._all_gather_ddp_if_available": agreed("all_gather", _G1),
    "lightning_fabric.utilities.distributed._distributed_is_initialized": UNIFORM,
    "lightning_fabric.utilities.distributed._init_dist_connection": lifecycle(
        "init_process_group", None, "init"
    ),
    "lightning_fabric.utilities.distributed._destroy_dist_connection": lifecycle(
        "destroy_process_group", None, "destroy"
    ),
    "lightning_fabric.utilities.distributed.is_shared_filesystem": agreed("is_shared_filesystem"),
}

CONSTANTS: dict[str, Fact] = {
    "lightning_utilities.core.rank_zero.rank_zero_only.rank": RANK,
}

TYPES: dict[str, TypeFacts] = {
    TRAINER: TypeFacts(
        methods={
            "fit": agreed("Trainer.run", paths=(Arg(4, "ckpt_path"),)),
            "validate": agreed("Trainer.run", paths=(Arg(2, "ckpt_path"),)),
            "test": agreed("Trainer.run", paths=(Arg(2, "ckpt_path"),)),
            "predict": agreed("Trainer.run", paths=(Arg(4, "ckpt_path"),)),
            "save_checkpoint": agreed("save_checkpoint", event="checkpoint-save", raises_local=True),
            "print": PURE,
            "from_argparse_args": Fact(returns=TRAINER),
        },
        attributes={
            **_IDENTITY,
            "strategy": Fact(returns=STRATEGY),
            "lightning_module": Fact(returns=LIGHTNING_MODULE),
            "current_epoch": UNIFORM,
            "global_step": UNIFORM,
            "max_epochs": UNIFORM,
            "max_steps": UNIFORM,
            "is_last_batch": UNIFORM,
            "sanity_checking": UNIFORM,
            "training": UNIFORM,
            "testing": UNIFORM,
            "validating": UNIFORM,
            "num_nodes": UNIFORM,
            "num_devices": UNIFORM,
            "logger": Fact(returns=LOGGER),
            "log_dir": agreed("trainer.log_dir"),
            "callback_metrics": _METRICS,
            "logged_metrics": _METRICS,
            "progress_bar_metrics": _METRICS,
            "estimated_stepping_batches": _STEPPING_BATCHES,
            "should_stop": Fact(event="stop-flag"),
            "received_sigterm": Fact(result="varying", varying="signal"),
        },
    ),
    LIGHTNING_MODULE: TypeFacts(
        bases=(MODULE,),
        methods={
            "log": agreed(
                "self.log",
                Arg(9, "sync_dist_group"),
                when=Arg(8, "sync_dist"),
                invariant=(Arg(0, "name"),),
            ),
            "log_dict": agreed(
                "self.log",
                Arg(8, "sync_dist_group"),
                when=Arg(7, "sync_dist"),
                each=Arg(0, "dictionary"),
            ),
            "all_gather": agreed("all_gather", _G1),
            "manual_backward": agreed("backward", event="backward"),
            "backward": agreed("backward", event="backward"),
            "print": PURE,
            "optimizers": PURE,
            "lr_schedulers": PURE,
            "clip_gradients": PURE,
            "save_hyperparameters": PURE,
        },
        attributes={
            "trainer": Fact(returns=TRAINER),
            "fabric": Fact(returns=FABRIC),
            "global_rank": RANK,
            "local_rank": LOCAL_RANK,
            "current_epoch": UNIFORM,
            "global_step": UNIFORM,
            "logger": Fact(returns=LOGGER),
        },
        hooks={
            "training_step": ("", ""),
            "validation_step": ("", ""),
            "test_step": ("", ""),
            "predict_step": ("", ""),
            "configure_optimizers": (),
            "on_fit_start": (),
            "on_fit_end": (),
            "on_train_start": (),
            "on_train_end": (),
            "on_train_epoch_start": (),
            "on_train_epoch_end": (),
            "on_validation_start": (),
            "on_validation_end": (),
            "on_validation_epoch_start": (),
            "on_validation_epoch_end": (),
            "on_validation_batch_start": ("", "", ""),
            "on_validation_batch_end": ("", "", "", ""),
            "on_test_start": (),
            "on_test_end": (),
            "on_test_epoch_start": (),
            "on_test_epoch_end": (),
            "on_predict_start": (),
            "on_predict_end": (),
            "on_predict_epoch_end": (),
            "on_train_batch_start": ("", ""),
            "on_train_batch_end": ("", "", ""),
            "on_before_backward": ("",),
            "on_after_backward": (),
            "on_before_optimizer_step": ("",),
            "on_before_zero_grad": ("",),
            "setup": ("",),
            "teardown": ("",),
            "on_save_checkpoint": ("",),
            "on_load_checkpoint": ("",),
        },
    ),
    "pytorch_lightning.LightningDataModule": TypeFacts(
        attributes={"trainer": Fact(returns=TRAINER)},
        hooks={"setup": ("",), "train_dataloader": (), "val_dataloader": ()},
    ),
    CALLBACK: TypeFacts(
        attributes={"trainer": Fact(returns=TRAINER), "pl_module": Fact(returns=LIGHTNING_MODULE)},
        hooks={
            "setup": (*_HOOK, ""),
            "teardown": (*_HOOK, ""),
            "on_fit_start": _HOOK,
            "on_fit_end": _HOOK,
            "on_sanity_check_start": _HOOK,
            "on_sanity_check_end": _HOOK,
            "on_train_start": _HOOK,
            "on_train_end": _HOOK,
            "on_train_epoch_start": _HOOK,
            "on_train_epoch_end": _HOOK,
            "on_validation_start": _HOOK,
            "on_validation_end": _HOOK,
            "on_validation_epoch_start": _HOOK,
            "on_validation_epoch_end": _HOOK,
            "on_test_start": _HOOK,
            "on_test_end": _HOOK,
            "on_test_epoch_start": _HOOK,
            "on_test_epoch_end": _HOOK,
            "on_predict_start": _HOOK,
            "on_predict_end": _HOOK,
            "on_train_batch_start": _BATCH_HOOK,
            "on_train_batch_end": _BATCH_END_HOOK,
            "on_validation_batch_start": (*_BATCH_HOOK, ""),
            "on_validation_batch_end": (*_BATCH_END_HOOK, ""),
            "on_test_batch_start": (*_BATCH_HOOK, ""),
            "on_test_batch_end": (*_BATCH_END_HOOK, ""),
            "on_exception": (*_HOOK, ""),
            "on_save_checkpoint": (*_HOOK, ""),
            "on_load_checkpoint": (*_HOOK, ""),
            "on_before_backward": (*_HOOK, ""),
            "on_after_backward": _HOOK,
            "on_before_optimizer_step": (*_HOOK, ""),
            "on_before_zero_grad": (*_HOOK, ""),
        },
    ),
    STRATEGY: TypeFacts(
        methods=_STRATEGY_CALLS,
        attributes={
            **_IDENTITY,
            "root_device": Fact(result="uniform", event="device"),
            "lightning_module": Fact(returns=LIGHTNING_MODULE),
        },
    ),
    LOGGER: TypeFacts(
        methods={
            "log_metrics": local("tracker-log", main_only="main"),
            "log_hyperparams": local("tracker-log", main_only="main"),
            "finalize": local("tracker-end", main_only="main"),
            "save": local("tracker-log", main_only="main"),
        }
    ),
    FABRIC: TypeFacts(
        methods={
            **_SHARED_CALLS,
            "setup": exchanged("fabric.setup", returns=_WRAPPED, event="wrap-module"),
            "setup_module": exchanged("fabric.setup", returns=_WRAPPED, event="wrap-module"),
            "setup_optimizers": Fact(result="args"),
            "setup_dataloaders": Fact(result="args", returns="accelerate.PreparedLoader"),
            "rank_zero_first": agreed("main_process_first", wraps="context", event="main-first"),
            "no_backward_sync": Fact(wraps="context", event="no-sync", invariant=(Arg(1, "enabled"),)),
            "clip_gradients": agreed("clip_grad_norm_", certainty="possible", sure_if_told=SHARDS),
            "save": agreed("fabric.save", event="checkpoint-save", raises_local=True),
            "load": agreed(
                "fabric.load", event="checkpoint-load", raises_local=True, paths=(Arg(0, "path"),)
            ),
            "launch": Fact(wraps="call", event="spawn"),
            "log": local("tracker-log", main_only="main"),
            "log_dict": local("tracker-log", main_only="main"),
            "print": PURE,
            "call": PURE,
            "seed_everything": Fact(event="seed-all", result="uniform"),
            "autocast": Fact(wraps="context"),
            "to_device": Fact(result="arg0"),
        },
        attributes={**_IDENTITY, "strategy": Fact(returns=STRATEGY)},
    ),
    _WRAPPED: TypeFacts(
        bases=(MODULE,),
        methods={"forward": _FORWARD},
        attributes={"module": Fact(returns=MODULE, event="unwrap")},
        call=_FORWARD,
    ),
}

_RANK_ZERO = "lightning_utilities.core.rank_zero"

ALIASES: dict[str, str] = {
    "lightning.pytorch": "pytorch_lightning",
    "lightning.fabric": "lightning_fabric",
    "lightning.Trainer": TRAINER,
    "lightning.LightningModule": LIGHTNING_MODULE,
    "lightning.LightningDataModule": "pytorch_lightning.LightningDataModule",
    "lightning.Callback": CALLBACK,
    "lightning.Fabric": FABRIC,
    "lightning.seed_everything": "pytorch_lightning.seed_everything",
    "lightning_fabric.seed_everything": "pytorch_lightning.seed_everything",
    "lightning_fabric.utilities.seed.seed_everything": "pytorch_lightning.seed_everything",
    "pytorch_lightning.utilities.rank_zero": _RANK_ZERO,
    "lightning_fabric.utilities.rank_zero": _RANK_ZERO,
    "pytorch_lightning.utilities.distributed": _RANK_ZERO,
    "pytorch_lightning.utilities.rank_zero_only": _RANK_ZERO + ".rank_zero_only",
    "pytorch_lightning.utilities.rank_zero_info": _RANK_ZERO + ".rank_zero_info",
    "pytorch_lightning.utilities.rank_zero_warn": _RANK_ZERO + ".rank_zero_warn",
    "pytorch_lightning.utilities.rank_zero_debug": _RANK_ZERO + ".rank_zero_debug",
    "pytorch_lightning.utilities.rank_zero_deprecation": _RANK_ZERO + ".rank_zero_deprecation",
    "lightning_fabric.utilities.rank_zero_only": _RANK_ZERO + ".rank_zero_only",
    "lightning_fabric.utilities.rank_zero_info": _RANK_ZERO + ".rank_zero_info",
    "lightning_fabric.utilities.rank_zero_warn": _RANK_ZERO + ".rank_zero_warn",
    "lightning_fabric.strategies.Strategy": STRATEGY,
}

CLASS_PATTERNS: tuple[tuple[str, str, str], ...] = (
    ("pytorch_lightning.callbacks.", "", CALLBACK),
    ("pytorch_lightning.strategies.", "Strategy", STRATEGY),
    ("lightning_fabric.strategies.", "Strategy", STRATEGY),
    ("pytorch_lightning.loggers.", "Logger", LOGGER),
)

LOOSE_ROOTS: tuple[str, ...] = ("pytorch_lightning.", "lightning_fabric.")
