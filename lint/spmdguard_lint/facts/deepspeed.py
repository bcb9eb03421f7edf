"""Facts on DeepSpeed (read from its source distribution): engines, ZeRO, its own communication layer."""

from __future__ import annotations

from .build import (
    GROUP,
    GROUP_RANK,
    LOCAL_RANK,
    MODULE,
    PURE,
    UNIFORM,
    agreed,
    choosing,
    exchanged,
    lifecycle,
    varying,
)
from .fact import Arg, Fact, TypeFacts

ENGINE = "deepspeed.DeepSpeedEngine"
LOADER = "torch.utils.data.DataLoader"
PIPELINE_ENGINE = "deepspeed.PipelineEngine"

_G0, _G1, _G2, _G3, _G4 = (Arg(i, "group") for i in range(5))
_TENSOR = Arg(0, "tensor")
_FORWARD = exchanged("deepspeed.forward", event="synced-forward")

FUNCTIONS: dict[str, Fact] = {
    "deepspeed.initialize": exchanged(
        "deepspeed.initialize",
        items=(ENGINE, "torch.optim.Optimizer", LOADER, ""),
        event="wrap-module",
    ),
    "deepspeed.init_distributed": lifecycle("init_process_group", None, "init"),
    "deepspeed.init_inference": exchanged(
        "deepspeed.init_inference", returns="deepspeed.InferenceEngine", event="wrap-module"
    ),
    "deepspeed.tp_model_init": exchanged(
        "deepspeed.tp_model_init", returns="deepspeed.InferenceEngine", event="wrap-module"
    ),
    "deepspeed.zero.Init": exchanged("zero.Init", wraps="context", certainty="likely"),
    "deepspeed.zero.GatheredParameters": agreed("zero.GatheredParameters", wraps="context"),
    "deepspeed.utils.log_dist": PURE,
    "deepspeed.utils.safe_get_full_fp32_param": agreed("safe_get_full_fp32_param"),
    "deepspeed.utils.safe_get_full_grad": agreed("safe_get_full_grad"),
    "deepspeed.utils.safe_get_full_optimizer_state": agreed("safe_get_full_optimizer_state"),
    "deepspeed.utils.safe_set_full_fp32_param": agreed("safe_set_full_fp32_param"),
    # deepspeed.comm mirrors torch.distributed
    "deepspeed.comm.all_reduce": agreed("all_reduce", _G2, _TENSOR, async_handle=True),
    "deepspeed.comm.inference_all_reduce": agreed("all_reduce", _G2, _TENSOR),
    "deepspeed.comm.all_reduce_coalesced": agreed(
        "all_reduce_coalesced", _G2, Arg(0, "tensors"), async_handle=True
    ),
    "deepspeed.comm.all_gather": agreed("all_gather", _G2, Arg(0, "tensor_list"), async_handle=True),
    "deepspeed.comm.all_gather_object": agreed("all_gather_object", _G2, Arg(0, "object_list")),
    "deepspeed.comm.all_gather_coalesced": agreed(
        "all_gather_coalesced", _G2, Arg(0, "output_tensors"), async_handle=True
    ),
    "deepspeed.comm.all_gather_into_tensor": agreed(
        "all_gather_into_tensor", _G2, Arg(0, "output_tensor"), async_handle=True
    ),
    "deepspeed.comm.allgather_fn": agreed(
        "all_gather_into_tensor", _G2, Arg(0, "output_tensor"), async_handle=True
    ),
    "deepspeed.comm.broadcast": agreed("broadcast", _G2, _TENSOR, root=Arg(1, "src"), async_handle=True),
    "deepspeed.comm.broadcast_object_list": agreed(
        "broadcast_object_list", _G2, Arg(0, "object_list"), root=Arg(1, "src")
    ),
    "deepspeed.comm.barrier": agreed("barrier", _G0, event="barrier", async_handle=True),
    "deepspeed.comm.monitored_barrier": agreed("monitored_barrier", _G0, event="barrier"),
    "deepspeed.comm.reduce": exchanged("reduce", _G3, _TENSOR, root=Arg(1, "dst"), async_handle=True),
    "deepspeed.comm.gather": exchanged(
        "gather", _G3, Arg(1, "gather_list"), root=Arg(2, "dst"), async_handle=True
    ),
    "deepspeed.comm.scatter": exchanged("scatter", _G3, _TENSOR, root=Arg(2, "src"), async_handle=True),
    "deepspeed.comm.reduce_scatter": exchanged("reduce_scatter", _G3, Arg(0, "output"), async_handle=True),
    "deepspeed.comm.reduce_scatter_tensor": exchanged(
        "reduce_scatter_tensor", _G3, Arg(0, "output_tensor"), async_handle=True
    ),
    "deepspeed.comm.reduce_scatter_fn": exchanged(
        "reduce_scatter_tensor", _G3, Arg(0, "output_tensor"), async_handle=True
    ),
    "deepspeed.comm.all_to_all": exchanged(
        "all_to_all", _G2, Arg(0, "output_tensor_list"), async_handle=True
    ),
    "deepspeed.comm.all_to_all_single": exchanged(
        "all_to_all_single", _G4, Arg(0, "output"), async_handle=True
    ),
    "deepspeed.comm.send": Fact(op="send", kind="point-to-point", group=_G2),
    "deepspeed.comm.recv": Fact(op="recv", kind="point-to-point", group=_G2, outputs=(_TENSOR,)),
    "deepspeed.comm.isend": Fact(op="isend", kind="point-to-point", group=_G2, async_handle=True),
    "deepspeed.comm.irecv": Fact(
        op="irecv", kind="point-to-point", group=_G2, outputs=(_TENSOR,), async_handle=True
    ),
    "deepspeed.comm.batch_isend_irecv": Fact(
        op="batch_isend_irecv", kind="point-to-point", async_handle=True
    ),
    "deepspeed.comm.new_group": lifecycle("new_group", None, "new-group", returns=GROUP),
    "deepspeed.comm.destroy_process_group": lifecycle("destroy_process_group", _G0, "destroy"),
    "deepspeed.comm.initialize_mesh_device": lifecycle("init_device_mesh", None, "new-group"),
    "deepspeed.comm.get_rank": varying("rank", group=_G0),
    "deepspeed.comm.get_local_rank": LOCAL_RANK,
    "deepspeed.comm.get_world_size": Fact(result="uniform", group=_G0, event="world-size"),
    "deepspeed.comm.get_world_group": Fact(result="uniform", returns=GROUP),
    "deepspeed.comm.get_global_rank": Fact(group=_G0),
    "deepspeed.comm.get_all_ranks_from_group": Fact(result="uniform", group=_G0),
    "deepspeed.comm.is_initialized": Fact(result="uniform", event="is-initialized"),
    "deepspeed.comm.is_available": Fact(result="uniform", event="is-available"),
}

_PIPELINE: dict[str, Fact] = {
    "train_batch": agreed("deepspeed.train_batch"),
    "eval_batch": agreed("deepspeed.eval_batch"),
    "is_first_stage": GROUP_RANK,
    "is_last_stage": GROUP_RANK,
}

TYPES: dict[str, TypeFacts] = {
    ENGINE: TypeFacts(
        bases=(MODULE,),
        methods={
            "forward": _FORWARD,
            "backward": agreed("backward", event="backward"),
            "step": exchanged("deepspeed.step", event="optimizer-step"),
            "allreduce_gradients": exchanged("deepspeed.allreduce_gradients"),
            "save_checkpoint": agreed(
                "deepspeed.save_checkpoint",
                event="checkpoint-save",
                raises_local=True,
                paths=(Arg(0, "save_dir"), Arg(1, "tag")),
            ),
            "load_checkpoint": agreed(
                "deepspeed.load_checkpoint",
                event="checkpoint-load",
                raises_local=True,
                paths=(Arg(0, "load_dir"), Arg(1, "tag")),
            ),
            "save_16bit_model": agreed(
                "deepspeed.save_16bit_model", event="checkpoint-save", raises_local=True
            ),
            "save_fp16_model": agreed(
                "deepspeed.save_16bit_model", event="checkpoint-save", raises_local=True
            ),
            "no_sync": Fact(wraps="context", event="no-sync"),
            "is_gradient_accumulation_boundary": UNIFORM,
            "set_gradient_accumulation_boundary": choosing("is_boundary"),
            "get_global_grad_norm": UNIFORM,
            "was_step_applied": UNIFORM,
            "get_data_parallel_rank": GROUP_RANK,
            "get_tensor_parallel_rank": GROUP_RANK,
            "get_model_parallel_rank": GROUP_RANK,
            "offload_states": PURE,
            "zero_grad": PURE,
            "get_lr": PURE,
            **_PIPELINE,  # what ``deepspeed.initialize`` returns for a pipeline has them
        },
        attributes={
            "module": Fact(returns=MODULE, event="unwrap"),
            "global_rank": varying("rank"),
            "local_rank": LOCAL_RANK,
            "world_size": Fact(result="uniform", event="world-size"),
            "global_steps": UNIFORM,
            "optimizer": Fact(returns="torch.optim.Optimizer"),
        },
        call=_FORWARD,
        sharded=True,
    ),
    PIPELINE_ENGINE: TypeFacts(
        bases=(ENGINE,),
        methods=_PIPELINE,
    ),
    "deepspeed.DeepSpeedHybridEngine": TypeFacts(
        bases=(ENGINE,), methods={"generate": exchanged("deepspeed.generate", certainty="likely")}
    ),
    "deepspeed.InferenceEngine": TypeFacts(
        bases=(MODULE,),
        methods={"generate": exchanged("deepspeed.generate", certainty="likely")},
        call=exchanged("deepspeed.forward", certainty="likely"),
    ),
    "deepspeed.PipelineModule": TypeFacts(bases=(MODULE,)),
}

LOOSE_ROOTS: tuple[str, ...] = ("deepspeed.",)
