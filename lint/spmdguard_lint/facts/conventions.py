"""What names mean by convention when nothing else is known: environment variables, attributes, parameters.

A name is listed only where it means one thing in training code. ``rank`` alone also names the rank of a LoRA
adapter, of a matrix and of a search result, so it is "possible" only: accept it in shapes like ``rank == 0``.
"""

from __future__ import annotations

import re

from .build import (
    BARRIER,
    IS_LAST,
    IS_LOCAL_MAIN,
    IS_MAIN,
    LOCAL_RANK,
    NODE_RANK,
    RANK,
    agreed,
    exchanged,
    varying,
)
from .fact import Arg, Fact

ENVIRONMENT: dict[str, Fact] = {
    "RANK": RANK,
    "PMI_RANK": RANK,
    "PMIX_RANK": RANK,
    "PALS_RANKID": RANK,
    "SLURM_PROCID": RANK,
    "OMPI_COMM_WORLD_RANK": RANK,
    "MV2_COMM_WORLD_RANK": RANK,
    "HOROVOD_RANK": RANK,
    "LOCAL_RANK": LOCAL_RANK,
    "SLURM_LOCALID": LOCAL_RANK,
    "MPI_LOCALRANKID": LOCAL_RANK,
    "PALS_LOCAL_RANKID": LOCAL_RANK,
    "OMPI_COMM_WORLD_LOCAL_RANK": LOCAL_RANK,
    "OMPI_COMM_WORLD_NODE_RANK": LOCAL_RANK,
    "MV2_COMM_WORLD_LOCAL_RANK": LOCAL_RANK,
    "HOROVOD_LOCAL_RANK": LOCAL_RANK,
    "NODE_RANK": NODE_RANK,
    "GROUP_RANK": NODE_RANK,
    "ROLE_RANK": RANK,
    "SLURM_NODEID": NODE_RANK,
    "MACHINE_RANK": NODE_RANK,
    "HOSTNAME": varying("environment"),
    "HOST": varying("environment"),
    "COMPUTERNAME": varying("environment"),
    "SLURMD_NODENAME": varying("environment"),
    "CUDA_VISIBLE_DEVICES": varying("environment", certainty="possible"),
    "TORCHELASTIC_ERROR_FILE": varying("environment"),
}

_LIKELY_RANK = varying("rank", certainty="likely")
_POSSIBLE_RANK = varying("rank", certainty="possible")
_LIKELY_LOCAL_RANK = varying("rank", event="local-rank", certainty="likely")
_LIKELY_MAIN = varying("rank", main_only="main", certainty="likely")
_LIKELY_LOCAL_MAIN = varying("rank", main_only="local_main", certainty="likely")
_POSSIBLE_MAIN = varying("rank", main_only="main", certainty="possible")

# the rank in a group along one dimension of the mesh: collectives of the whole world do not belong below a test of it
_WAYS = ["tp", "pp", "cp", "ep", "sp", "mp", "pipe", "pipeline"]
_WAYS += [
    f"{what}_parallel" for what in ("tensor", "pipeline", "context", "expert", "sequence", "model", "data")
]

NAMES: dict[str, Fact] = {
    **dict.fromkeys((f"{way}_rank" for way in _WAYS), varying("group-rank", certainty="likely")),
    "rank": _POSSIBLE_RANK,
    "global_rank": _LIKELY_RANK,
    "world_rank": _LIKELY_RANK,
    "dist_rank": _LIKELY_RANK,
    "ddp_rank": _LIKELY_RANK,
    "dp_rank": _LIKELY_RANK,
    "process_rank": _LIKELY_RANK,
    "process_index": _LIKELY_RANK,
    "local_rank": _LIKELY_LOCAL_RANK,
    "local_process_index": _LIKELY_LOCAL_RANK,
    "ddp_local_rank": _LIKELY_LOCAL_RANK,
    "node_rank": varying("rank", event="node-rank", certainty="likely"),
    "is_main_process": _LIKELY_MAIN,
    "is_main": _POSSIBLE_MAIN,
    "main_process": _LIKELY_MAIN,
    "is_master": _LIKELY_MAIN,
    "is_master_process": _LIKELY_MAIN,
    "master_process": _LIKELY_MAIN,
    "is_rank_zero": _LIKELY_MAIN,
    "is_rank_0": _LIKELY_MAIN,
    "is_rank0": _LIKELY_MAIN,
    "is_global_zero": _LIKELY_MAIN,
    "is_world_process_zero": _LIKELY_MAIN,
    "is_local_process_zero": _LIKELY_LOCAL_MAIN,
    "is_local_main_process": _LIKELY_LOCAL_MAIN,
    "is_local_master": _LIKELY_LOCAL_MAIN,
    "is_leader": _POSSIBLE_MAIN,
    "is_chief": _POSSIBLE_MAIN,
    "is_coordinator": _POSSIBLE_MAIN,
}

UNKNOWN_ATTRIBUTES: dict[str, Fact] = {
    "is_main_process": IS_MAIN,
    "is_local_main_process": IS_LOCAL_MAIN,
    "is_last_process": IS_LAST,
    "is_global_zero": IS_MAIN,
    "is_world_process_zero": IS_MAIN,
    "is_local_process_zero": IS_LOCAL_MAIN,
    "is_master_process": IS_MAIN,
    "is_rank_zero": IS_MAIN,
    "process_index": RANK,
    "local_process_index": LOCAL_RANK,
    "global_rank": RANK,
    "local_rank": LOCAL_RANK,
    "node_rank": NODE_RANK,
    "rank": _POSSIBLE_RANK,
}

# Flags that say whether there are several ranks at all; where there is one, nothing can part, so they are read as true.
LAUNCHED: frozenset[str] = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "is_", "use_", "run_", "enable_")
    for name in ("distributed", "ddp", "dist", "multi_gpu", "multigpu", "distributed_training")
) - {"dist", "ddp", "run_dist", "run_ddp"}

# Hooks in which what a framework's attribute does differs from elsewhere (``Fact.during``).
EPOCH_ENDS = frozenset(
    {
        "on_train_epoch_end",
        "on_validation_epoch_end",
        "on_test_epoch_end",
        "training_epoch_end",
        "validation_epoch_end",
        "test_epoch_end",
    }
)
# Hooks that one process of each node runs.
ONE_PROCESS_HOOKS = frozenset({"prepare_data"})
# Hooks that an exception calls on the rank where it is raised.
FAILURE_HOOKS = frozenset({"on_exception"})
SETTING_UP = frozenset({"setup", "configure_model", "configure_optimizers"})

TYPES_BY_NAME: dict[str, str] = {
    "accelerator": "accelerate.Accelerator",
    "fabric": "lightning_fabric.Fabric",
    "model_engine": "deepspeed.DeepSpeedEngine",
    "process_group": "torch.distributed.ProcessGroup",
    "device_mesh": "torch.distributed.DeviceMesh",
    "pl_module": "pytorch_lightning.LightningModule",
    "training_args": "transformers.TrainingArguments",
}

# What a parameter of that name is in a file that imports such names.
TYPES_BY_IMPORT: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "trainer": (
        (
            re.compile(r"(?:pytorch_lightning|lightning(?:\.pytorch)?)(?:\.(?!fabric)|$)"),
            "pytorch_lightning.Trainer",
        ),
        (
            re.compile(r"(?:transformers|trl)\.(?:\w+\.)*\w*Trainer(?:Callback|State)?$"),
            "transformers.Trainer",
        ),
    ),
}

# Names of helpers, defined where they cannot be read, that make a value the same on every rank.
AGREES = re.compile(
    r"all_?reduce|all_?gather|(?:^|_)(?:reduce|gather|broadcast|sync|average|mean|max|min|sum)_(?:tensor|value|scalar|loss"
    r"|losses|dict|metric|metrics|mean|sum|max|min|flag|stats|results?|predictions|objects?|bool|decision|across)"
    r"|across_(?:ranks|processes|replicas|devices|workers|gpus)|(?:dist|distributed|global|world)_(?:mean|sum|max|min|avg"
    r"|average|reduce|any|all|concat)$"
)
# Libraries whose functions of such names work on one process's data.
LOCAL_ROOTS = frozenset(
    {
        "torch",
        "numpy",
        "scipy",
        "pandas",
        "tensorflow",
        "jax",
        "keras",
        "sklearn",
        "cupy",
        "polars",
        "dask",
        "xarray",
    }
    | {"einops", "cv2", "PIL", "tensordict", "torch_scatter", "triton"}
)

_ANY = 99
_WRITTEN = Fact(raises_local=True, event="write", certainty="likely")
_TENSOR = Arg(0, "tensor")  # what such a method leaves the same on every rank, in place

UNKNOWN_METHODS: dict[str, tuple[int, int, Fact]] = {
    "getsockname": (0, 0, varying("environment")),
    "should_prune": (0, 1, varying("data", certainty="likely")),
    "wait_for_everyone": (0, 0, BARRIER),
    "all_reduce": (1, _ANY, agreed("all_reduce", None, _TENSOR, certainty="likely")),
    "all_gather": (1, _ANY, agreed("all_gather", certainty="likely")),
    "all_gather_object": (1, _ANY, agreed("all_gather_object", certainty="likely")),
    "all_gather_into_tensor": (
        2,
        _ANY,
        agreed("all_gather_into_tensor", None, Arg(0, "output_tensor"), certainty="likely"),
    ),
    "all_to_all": (1, _ANY, exchanged("all_to_all", certainty="likely")),
    "all_to_all_single": (1, _ANY, exchanged("all_to_all_single", certainty="likely")),
    "broadcast_object_list": (
        1,
        _ANY,
        agreed("broadcast_object_list", None, Arg(0, "object_list"), certainty="likely"),
    ),
    "reduce_scatter": (1, _ANY, exchanged("reduce_scatter", certainty="likely")),
    "reduce_scatter_tensor": (1, _ANY, exchanged("reduce_scatter_tensor", certainty="likely")),
    "gather_for_metrics": (1, _ANY, agreed("gather_for_metrics", certainty="likely")),
    "reduce_boolean_decision": (1, 2, agreed("reduce_boolean_decision", certainty="likely")),
    "full_tensor": (0, 1, agreed("full_tensor", certainty="likely")),
    "monitored_barrier": (0, _ANY, agreed("monitored_barrier", event="barrier")),
    "barrier": (0, 2, agreed("barrier", event="barrier", certainty="likely")),
    "save_pretrained": (1, _ANY, _WRITTEN),
    **dict.fromkeys(
        (
            "save_to_disk",
            "to_parquet",
            "to_csv",
            "to_pickle",
            "to_feather",
            "write_parquet",
            "write_csv",
            "savefig",
        ),
        (1, _ANY, _WRITTEN),
    ),
    "unlink": (0, 1, Fact(raises_local=True, event="remove", certainty="likely")),
    "push_to_hub": (0, _ANY, Fact(raises_local=True, event="upload", certainty="likely")),
    "destroy_process_group": (
        0,
        1,
        Fact(op="destroy_process_group", kind="lifecycle", result="uniform", event="destroy"),
    ),
    "init_process_group": (
        0,
        _ANY,
        Fact(op="init_process_group", kind="lifecycle", result="uniform", event="init"),
    ),
    "is_main_process": (0, 1, IS_MAIN),
    "is_world_process_zero": (0, 0, IS_MAIN),
    "is_local_process_zero": (0, 0, IS_LOCAL_MAIN),
    "is_global_zero": (0, 0, IS_MAIN),
    "is_rank_zero": (0, 1, IS_MAIN),
    "get_rank": (0, 1, varying("rank", certainty="likely")),
    "get_local_rank": (0, 1, varying("rank", event="local-rank", certainty="likely")),
    "get_global_rank": (0, 0, varying("rank", certainty="likely")),
    "get_world_size": (0, 1, Fact(result="uniform", event="world-size", certainty="likely")),
}

BATCHES = frozenset({"batch", "samples", "examples"})  # how hooks of frameworks name what a loader gave
