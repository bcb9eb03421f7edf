"""Facts on wrappers of modules and optimizers: DDP, FSDP 1 and 2, tensor parallel, pipelines, Join, RPC."""

from __future__ import annotations

from .build import MODULE, agreed, choosing, exchanged, lifecycle, paired
from .fact import Arg, Fact, TypeFacts

DDP = "torch.nn.parallel.DistributedDataParallel"
FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
FSDP2 = "torch.distributed.fsdp.FSDPModule"
DTENSOR = "torch.distributed.tensor.DTensor"
OPTIMIZER = "torch.optim.Optimizer"

_MODULE_0 = Arg(0, "module")
_FORWARD_DDP = exchanged("DDP.forward", event="synced-forward", certainty="likely")
_FORWARD_FSDP = exchanged("FSDP.forward", event="synced-forward")
_UNWRAPPED = Fact(returns=MODULE, event="unwrap")
_SHARDED_STATE = exchanged("FSDP.state_dict", certainty="likely")
_SCHEDULE = "torch.distributed.pipelining.schedules._PipelineSchedule"

FUNCTIONS: dict[str, Fact] = {
    DDP: agreed("DistributedDataParallel", Arg(6, "process_group"), returns=DDP, event="wrap-module"),
    FSDP: agreed(
        "FullyShardedDataParallel",
        Arg(1, "process_group"),
        returns=FSDP,
        event="wrap-module",
        certainty="likely",
    ),
    "torch.distributed.fsdp.fully_shard": agreed(
        "fully_shard",
        Arg(-1, "mesh"),
        returns=FSDP2,
        retypes=_MODULE_0,
        event="wrap-module",
        certainty="likely",
    ),
    "torch.distributed._composable.replicate": agreed(
        "replicate", returns=DDP, retypes=_MODULE_0, event="wrap-module", certainty="likely"
    ),
    f"{FSDP}.state_dict_type": Fact(wraps="context", retypes=_MODULE_0, returns=FSDP),
    f"{FSDP}.set_state_dict_type": Fact(retypes=_MODULE_0, returns=FSDP),
    "torch.distributed.fsdp.wrap.wrap": Fact(result="arg0"),
    "torch.distributed.tensor.parallel.parallelize_module": agreed(
        "parallelize_module",
        Arg(1, "device_mesh"),
        returns=FSDP2,
        retypes=_MODULE_0,
        event="wrap-module",
        certainty="likely",
    ),
    "torch.distributed.tensor.parallel.loss_parallel": Fact(wraps="context"),
    "torch.distributed.tensor.distribute_tensor": agreed(
        "distribute_tensor", Arg(1, "device_mesh"), returns=DTENSOR
    ),
    "torch.distributed.tensor.distribute_module": agreed(
        "distribute_module", Arg(1, "device_mesh"), returns=FSDP2, retypes=_MODULE_0, event="wrap-module"
    ),
    "torch.distributed.algorithms.join.Join": exchanged(
        "Join", wraps="context", returns="torch.distributed.algorithms.join.Join", event="join"
    ),
    # torch.distributed.rpc: agents meet in a store barrier at both ends
    "torch.distributed.rpc.init_rpc": lifecycle("init_rpc", None, "init"),
    "torch.distributed.rpc.shutdown": lifecycle("rpc.shutdown", None, "destroy"),
    "torch.distributed.rpc.rpc_sync": paired("rpc_sync", result="varying", varying="data"),
    "torch.distributed.rpc.rpc_async": paired("rpc_async", async_handle=True),
    "torch.distributed.rpc.remote": paired("rpc_remote"),
    "torch.distributed.elastic.multiprocessing.errors.record": Fact(wraps="decorator", result="arg0"),
    "torch.distributed.elastic.utils.store.barrier": agreed("store.barrier", event="barrier"),
    "torch.distributed.elastic.utils.store.synchronize": agreed("store.synchronize"),
}

_PIPELINE_STEP = exchanged("pipeline.step", event="synced-forward")

TYPES: dict[str, TypeFacts] = {
    DDP: TypeFacts(
        bases=(MODULE,),
        methods={
            "forward": _FORWARD_DDP,
            "no_sync": Fact(wraps="context", event="no-sync"),
            "join": exchanged("Join", wraps="context", event="join"),
            "register_comm_hook": Fact(),
            "train": Fact(result="receiver"),
        },
        attributes={"module": _UNWRAPPED, "require_backward_grad_sync": Fact(event="request-flag")},
        call=_FORWARD_DDP,
    ),
    FSDP: TypeFacts(
        bases=(MODULE,),
        methods={
            "forward": _FORWARD_FSDP,
            "no_sync": Fact(wraps="context", event="no-sync"),
            "clip_grad_norm_": agreed("clip_grad_norm_"),
            "state_dict": _SHARDED_STATE,
            "load_state_dict": agreed("FSDP.load_state_dict", certainty="likely"),
            "state_dict_type": Fact(wraps="context"),
            "set_state_dict_type": Fact(),
            "summon_full_params": agreed("summon_full_params", wraps="context"),
            "full_optim_state_dict": exchanged("full_optim_state_dict", Arg(4, "group")),
            "sharded_optim_state_dict": exchanged("sharded_optim_state_dict", Arg(2, "group")),
            "optim_state_dict": exchanged("optim_state_dict", Arg(3, "group")),
            "optim_state_dict_to_load": exchanged("optim_state_dict_to_load", Arg(5, "group")),
            "scatter_full_optim_state_dict": exchanged("scatter_full_optim_state_dict", Arg(4, "group")),
            "shard_full_optim_state_dict": exchanged("shard_full_optim_state_dict", certainty="possible"),
            "fsdp_modules": Fact(),
        },
        attributes={"module": _UNWRAPPED},
        call=_FORWARD_FSDP,
        sharded=True,
    ),
    FSDP2: TypeFacts(
        bases=(MODULE,),
        methods={
            "forward": _FORWARD_FSDP,
            "unshard": exchanged("unshard", async_handle=True),
            "reshard": Fact(),
            "set_requires_gradient_sync": choosing("requires_gradient_sync"),
            "set_requires_all_reduce": choosing("requires_all_reduce"),
        },
        call=_FORWARD_FSDP,
        sharded=True,
    ),
    DTENSOR: TypeFacts(
        bases=("torch.Tensor",),
        methods={
            "full_tensor": agreed("full_tensor", returns="torch.Tensor"),
            "redistribute": exchanged("redistribute", returns=DTENSOR, async_handle=True),
            "to_local": Fact(result="varying", varying="data", returns="torch.Tensor", event="to-local"),
            "from_local": Fact(returns=DTENSOR),
            "item": agreed("DTensor.item", certainty="likely"),
        },
        attributes={
            "placements": Fact(result="uniform"),
            "device_mesh": Fact(result="uniform", returns="torch.distributed.DeviceMesh"),
        },
        sharded=True,
    ),
    "torch.distributed.algorithms.join.Join": TypeFacts(
        methods={"notify_join_context": exchanged("Join.notify", certainty="likely")}
    ),
    "torch.distributed.optim.ZeroRedundancyOptimizer": TypeFacts(
        bases=(OPTIMIZER,),
        methods={
            "step": exchanged("ZeroRedundancyOptimizer.step"),
            "consolidate_state_dict": exchanged("consolidate_state_dict", root=Arg(0, "to")),
            "load_state_dict": Fact(),
            "state_dict": Fact(result="varying", varying="data"),
        },
    ),
    "torch.distributed.optim.PostLocalSGDOptimizer": TypeFacts(
        bases=(OPTIMIZER,), methods={"step": exchanged("PostLocalSGDOptimizer.step")}
    ),
    _SCHEDULE: TypeFacts(
        methods={"step": _PIPELINE_STEP, "eval": exchanged("pipeline.eval")},
    ),
    "torch.distributed.pipelining.ScheduleGPipe": TypeFacts(bases=(_SCHEDULE,)),
    "torch.distributed.pipelining.Schedule1F1B": TypeFacts(bases=(_SCHEDULE,)),
    "torch.distributed.pipelining.ScheduleInterleaved1F1B": TypeFacts(bases=(_SCHEDULE,)),
    "torch.distributed.pipelining.ScheduleLoopedBFS": TypeFacts(bases=(_SCHEDULE,)),
    "torch.distributed.pipelining.ScheduleInterleavedZeroBubble": TypeFacts(bases=(_SCHEDULE,)),
    "torch.distributed.pipelining.ScheduleZBVZeroBubble": TypeFacts(bases=(_SCHEDULE,)),
    "torch.distributed.pipelining.ScheduleDualPipeV": TypeFacts(bases=(_SCHEDULE,)),
    "torch.nn.SyncBatchNorm": TypeFacts(
        bases=(MODULE,),
        methods={
            "convert_sync_batchnorm": Fact(result="arg0", event="sync-batchnorm"),
        },
        call=exchanged("SyncBatchNorm.forward", event="synced-forward", certainty="likely"),
    ),
}

ALIASES: dict[str, str] = {
    "torch.nn.parallel.distributed.DistributedDataParallel": DDP,
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel": FSDP,
    "torch.distributed.checkpoint.state_dict.FSDP": FSDP,
    "torch.distributed.fsdp._fully_shard.fully_shard": "torch.distributed.fsdp.fully_shard",
    "torch.distributed.fsdp._fully_shard._fully_shard.fully_shard": "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fully_shard": "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard": "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard.fully_shard": "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.FSDPModule": FSDP2,
    "torch.distributed._composable.fsdp.fully_shard.FSDPModule": FSDP2,
    "torch.distributed.fsdp._fully_shard.FSDPModule": FSDP2,
    "torch.distributed.fsdp._fully_shard._fully_shard.FSDPModule": FSDP2,
    "torch.distributed.fsdp.UnshardHandle": "torch.distributed.Work",
    "torch.distributed._composable.replicate.replicate": "torch.distributed._composable.replicate",
    "torch.distributed._composable.replicate_with_fsdp.replicate": "torch.distributed._composable.replicate",
    "torch.distributed._tensor.api.DTensor": DTENSOR,
    "torch.distributed.tensor._api.DTensor": DTENSOR,
    "torch.distributed.tensor.api.DTensor": DTENSOR,
    "torch.distributed.optim.zero_redundancy_optimizer.ZeroRedundancyOptimizer": (
        "torch.distributed.optim.ZeroRedundancyOptimizer"
    ),
    "torch.distributed.tensor.parallel.api.parallelize_module": (
        "torch.distributed.tensor.parallel.parallelize_module"
    ),
    "torch.distributed.pipelining.schedules.PipelineScheduleSingle": _SCHEDULE,
    "torch.distributed.pipelining.schedules.PipelineScheduleMulti": _SCHEDULE,
    "torch.distributed.elastic.multiprocessing.errors.record.record": (
        "torch.distributed.elastic.multiprocessing.errors.record"
    ),
    "torch.distributed.algorithms.Join": "torch.distributed.algorithms.join.Join",
    "torch.nn.modules.batchnorm.SyncBatchNorm": "torch.nn.SyncBatchNorm",
    "torch.nn.modules.SyncBatchNorm": "torch.nn.SyncBatchNorm",
}

PREFIXES: dict[str, str] = {
    "torch.distributed._tensor.": "torch.distributed.tensor.",
    "torch.distributed.tensor._api.": "torch.distributed.tensor.",
    "torch.distributed.pipelining.schedules.": "torch.distributed.pipelining.",
    "torch.distributed.rpc.api.": "torch.distributed.rpc.",
}
