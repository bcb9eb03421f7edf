"""Facts on trainers with their own helpers: torchtune, torchtitan, Composer, MMEngine, NeMo, verl."""

from __future__ import annotations

from .build import (
    BARRIER,
    GROUP,
    IS_MAIN,
    LOCAL_RANK,
    MAIN_DECORATOR,
    MODULE,
    NODE_RANK,
    PURE,
    RANK,
    UNIFORM,
    WORLD_SIZE,
    agreed,
    exchanged,
    lifecycle,
    local,
    varying,
)
from .fact import Arg, Fact, TypeFacts

_G0, _G1, _G2 = (Arg(i, "group") for i in range(3))
_MESH_1 = Arg(1, "mesh")
_TENSOR = Arg(0, "tensor")
_RUNNER = "mmengine.runner.Runner"
_COMPOSER = "composer.Trainer"

FUNCTIONS: dict[str, Fact] = {
    # torchtune 0.6
    "torchtune.utils.get_world_size_and_rank": varying("rank", parts=(WORLD_SIZE, RANK)),
    "torchtune.utils.log_rank_zero": PURE,
    "torchtune.training.is_distributed": UNIFORM,
    "torchtune.training.init_distributed": lifecycle("init_process_group", None, "init"),
    "torchtune.training.gather_cpu_state_dict": exchanged("gather_cpu_state_dict"),
    "torchtune.training.get_full_optimizer_state_dict": exchanged("get_full_optimizer_state_dict"),
    "torchtune.training.load_from_full_model_state_dict": agreed("load_from_full_model_state_dict"),
    "torchtune.training.load_from_full_optimizer_state_dict": agreed("load_from_full_optimizer_state_dict"),
    "torchtune.training.shard_model": agreed(
        "fully_shard",
        returns="torch.distributed.fsdp.FSDPModule",
        retypes=Arg(0, "model"),
        event="wrap-module",
    ),
    "torchtune.training.set_seed": Fact(event="seed-all", result="uniform"),
    "torchtune.training.scale_grads": PURE,
    # torchtitan 0.3
    "torchtitan.distributed.utils.dist_max": agreed("all_reduce", _MESH_1),
    "torchtitan.distributed.utils.dist_mean": agreed("all_reduce", _MESH_1),
    "torchtitan.distributed.utils.dist_sum": agreed("all_reduce", _MESH_1),
    "torchtitan.distributed.utils.dist_sum_tensor": agreed("all_reduce", _MESH_1),
    "torchtitan.distributed.utils.set_determinism": agreed("broadcast", event="seed-all"),
    "torchtitan.distributed.utils.init_distributed": lifecycle("init_process_group", None, "init"),
    "torchtitan.distributed.utils.clip_grad_norm_": agreed("clip_grad_norm_"),
    # Composer 0.32
    "composer.utils.dist.get_global_rank": varying("rank", group=_G0),
    "composer.utils.dist.get_local_rank": LOCAL_RANK,
    "composer.utils.dist.get_node_rank": NODE_RANK,
    "composer.utils.dist.get_world_size": WORLD_SIZE,
    "composer.utils.dist.get_local_world_size": WORLD_SIZE,
    "composer.utils.dist.barrier": agreed("barrier", _G0, event="barrier"),
    "composer.utils.dist.all_reduce": agreed("all_reduce", _G2, _TENSOR),
    "composer.utils.dist.broadcast": agreed("broadcast", _G2, _TENSOR, root=Arg(1, "src")),
    "composer.utils.dist.broadcast_object_list": agreed(
        "broadcast_object_list", _G2, Arg(0, "object_list"), root=Arg(1, "src")
    ),
    "composer.utils.dist.all_gather": agreed("all_gather", _G1),
    "composer.utils.dist.all_gather_object": agreed("all_gather_object", _G1),
    "composer.utils.dist.is_available": UNIFORM,
    "composer.utils.dist.is_initialized": UNIFORM,
    "composer.utils.dist.initialize_dist": lifecycle("init_process_group", None, "init"),
    "composer.utils.dist.run_local_rank_zero_first": agreed(
        "main_process_first", wraps="context", event="main-first"
    ),
    "composer.utils.dist.local_rank_zero_download_and_wait": Fact(wraps="context"),  # waits for a file
    "composer.utils.dist.busy_wait_for_local_rank_zero": Fact(wraps="context", event="main-first"),
    "composer.utils.reproducibility.seed_all": Fact(event="seed-all", result="uniform"),
    # MMEngine 0.10
    "mmengine.dist.all_reduce": agreed("all_reduce", _G2, Arg(0, "data")),
    "mmengine.dist.all_gather": agreed("all_gather", _G1),
    "mmengine.dist.all_gather_object": agreed("all_gather_object", _G1),
    "mmengine.dist.all_reduce_dict": agreed("all_reduce", _G2, Arg(0, "data")),
    "mmengine.dist.all_reduce_params": agreed("all_reduce", Arg(4, "group"), Arg(0, "params")),
    "mmengine.dist.broadcast": agreed("broadcast", _G2, Arg(0, "data"), root=Arg(1, "src")),
    "mmengine.dist.broadcast_object_list": agreed(
        "broadcast_object_list", _G2, Arg(0, "data"), root=Arg(1, "src")
    ),
    "mmengine.dist.gather": exchanged("gather", _G2, root=Arg(1, "dst")),
    "mmengine.dist.gather_object": exchanged("gather_object", _G2, root=Arg(1, "dst")),
    "mmengine.dist.collect_results": exchanged("collect_results"),
    "mmengine.dist.collect_results_cpu": exchanged("collect_results"),
    "mmengine.dist.collect_results_gpu": exchanged("collect_results"),
    "mmengine.dist.sync_random_seed": agreed("broadcast", _G0),
    "mmengine.dist.barrier": agreed("barrier", _G0, event="barrier"),
    "mmengine.dist.get_rank": varying("rank", group=_G0),
    "mmengine.dist.get_local_rank": LOCAL_RANK,
    "mmengine.dist.get_world_size": WORLD_SIZE,
    "mmengine.dist.get_local_size": WORLD_SIZE,
    "mmengine.dist.get_dist_info": varying("rank", group=_G0, parts=(RANK, WORLD_SIZE)),
    "mmengine.dist.get_local_group": Fact(result="uniform", returns=GROUP, event="own-group"),
    "mmengine.dist.get_default_group": Fact(result="uniform", returns=GROUP, event="default-group"),
    "mmengine.dist.is_main_process": IS_MAIN,
    "mmengine.dist.is_distributed": UNIFORM,
    "mmengine.dist.master_only": MAIN_DECORATOR,
    "mmengine.dist.init_dist": lifecycle("init_process_group", None, "init"),
    "mmengine.dist.init_local_group": lifecycle("new_group", None, "new-group"),
    "mmcv.runner.get_dist_info": varying("rank", parts=(RANK, WORLD_SIZE)),
    "mmcv.runner.master_only": MAIN_DECORATOR,
    # NeMo and its relatives
    "nemo.utils.get_rank.is_global_rank_zero": IS_MAIN,
    "nemo.utils.get_rank.get_rank": RANK,
    "nemo.utils.get_rank.get_last_rank": UNIFORM,
    "pytorch_metric_learning.utils.distributed.all_gather": agreed("all_gather"),
    # detectron2 and fvcore
    "detectron2.utils.comm.get_rank": RANK,
    "detectron2.utils.comm.get_local_rank": LOCAL_RANK,
    "detectron2.utils.comm.get_world_size": WORLD_SIZE,
    "detectron2.utils.comm.is_main_process": IS_MAIN,
    "detectron2.utils.comm.synchronize": BARRIER,
    "detectron2.utils.comm.all_gather": agreed("all_gather_object", _G1),
    "detectron2.utils.comm.gather": exchanged("gather_object", _G2, root=Arg(1, "dst")),
    "detectron2.utils.comm.reduce_dict": exchanged("reduce"),
    "detectron2.utils.comm.shared_random_seed": agreed("all_gather_object"),
    "fvcore.common.file_io.PathManager.open": local("open"),
}

_COMPOSER_RUN = agreed("Trainer.run")

TYPES: dict[str, TypeFacts] = {
    _COMPOSER: TypeFacts(
        methods={
            "fit": _COMPOSER_RUN,
            "eval": _COMPOSER_RUN,
            "predict": _COMPOSER_RUN,
            "save_checkpoint": agreed("save_checkpoint", event="checkpoint-save", raises_local=True),
            "save_checkpoint_to_save_folder": agreed(
                "save_checkpoint", event="checkpoint-save", raises_local=True
            ),
            "close": Fact(event="tracker-end"),
        }
    ),
    _RUNNER: TypeFacts(
        methods={
            "train": _COMPOSER_RUN,
            "val": _COMPOSER_RUN,
            "test": _COMPOSER_RUN,
            "save_checkpoint": local("write", main_only="main"),
        },
        attributes={"rank": RANK, "world_size": WORLD_SIZE, "distributed": UNIFORM},
    ),
    "mmengine.model.MMDistributedDataParallel": TypeFacts(
        bases=("torch.nn.parallel.DistributedDataParallel",)
    ),
    "torchtune.training.checkpointing.CheckpointClient": TypeFacts(
        methods={
            "save_checkpoint": agreed("save_checkpoint", event="checkpoint-save", raises_local=True),
            "load_distributed_checkpoint": agreed("checkpoint.load", event="checkpoint-load"),
        }
    ),
    "torchtitan.components.checkpoint.CheckpointManager": TypeFacts(
        methods={
            "save": agreed("checkpoint.save", event="checkpoint-save", raises_local=True),
            "load": agreed("checkpoint.load", event="checkpoint-load", raises_local=True),
        }
    ),
    "composer.ComposerModel": TypeFacts(bases=(MODULE,)),
}

ALIASES: dict[str, str] = {
    "torchtune.training.get_world_size_and_rank": "torchtune.utils.get_world_size_and_rank",
    "composer.trainer.Trainer": _COMPOSER,
    "composer.trainer.trainer.Trainer": _COMPOSER,
    "mmengine.dist.utils.is_main_process": "mmengine.dist.is_main_process",
}

PREFIXES: dict[str, str] = {
    "mmengine.dist.dist.": "mmengine.dist.",
    "mmengine.dist.utils.": "mmengine.dist.",
    "mmcv.runner.dist_utils.": "mmcv.runner.",
    "torchtune.training._distributed.": "torchtune.training.",
    "torchtune.utils._device.": "torchtune.utils.",
    "torchtune.utils._logging.": "torchtune.utils.",
}

LOOSE_ROOTS: tuple[str, ...] = ("mmengine.", "composer.", "torchtune.", "torchtitan.")
