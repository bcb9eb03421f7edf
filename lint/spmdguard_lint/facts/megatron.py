"""Facts on Megatron core (read from 0.16): parallel state, sharded checkpoints, tensor-parallel mappings."""

from __future__ import annotations

from .build import GROUP, GROUP_RANK, RANK, UNIFORM, agreed, exchanged, lifecycle
from .fact import Arg, Fact, TypeFacts

_GROUP = Fact(result="uniform", returns=GROUP, event="own-group")
_STAGE = Fact(result="varying", varying="group-rank", event="pipeline-stage")
_SIZE = Fact(result="uniform", event="group-size")
_SRC = Fact(result="varying", varying="group-rank", event="group-source")
_G1 = Arg(1, "group")
_SCHEDULE_TYPE = "megatron.core.pipeline_parallel.Schedule"
_SCHEDULE = exchanged(
    "forward-backward schedule", certainty="likely"
)  # stages send activations to one another

FUNCTIONS: dict[str, Fact] = {
    "megatron.core.parallel_state.initialize_model_parallel": lifecycle(
        "initialize_model_parallel", None, "new-group"
    ),
    "megatron.core.parallel_state.destroy_model_parallel": lifecycle("destroy_model_parallel"),
    "megatron.core.parallel_state.create_group": lifecycle(
        "new_group", None, "new-group", unless=Arg(4, "use_local_synchronization"), returns=GROUP
    ),
    "megatron.core.parallel_state.is_initialized": UNIFORM,
    "megatron.core.parallel_state.model_parallel_is_initialized": UNIFORM,
    # groups: every rank gets its own
    "megatron.core.parallel_state.get_model_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_tensor_model_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_pipeline_model_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_data_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_data_parallel_group_gloo": _GROUP,
    "megatron.core.parallel_state.get_context_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_embedding_group": _GROUP,
    "megatron.core.parallel_state.get_position_embedding_group": _GROUP,
    "megatron.core.parallel_state.get_amax_reduction_group": _GROUP,
    "megatron.core.parallel_state.get_tensor_and_data_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_tensor_and_context_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_expert_model_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_expert_tensor_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_expert_data_parallel_group": _GROUP,
    "megatron.core.parallel_state.get_expert_data_parallel_group_gloo": _GROUP,
    # sizes
    "megatron.core.parallel_state.get_tensor_model_parallel_world_size": _SIZE,
    "megatron.core.parallel_state.get_pipeline_model_parallel_world_size": _SIZE,
    "megatron.core.parallel_state.get_virtual_pipeline_model_parallel_world_size": _SIZE,
    "megatron.core.parallel_state.get_data_parallel_world_size": _SIZE,
    "megatron.core.parallel_state.get_context_parallel_world_size": _SIZE,
    "megatron.core.parallel_state.get_expert_model_parallel_world_size": _SIZE,
    "megatron.core.parallel_state.get_expert_data_parallel_world_size": _SIZE,
    "megatron.core.parallel_state.get_expert_tensor_parallel_world_size": _SIZE,
    # identity
    "megatron.core.parallel_state.get_tensor_model_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.get_pipeline_model_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.get_virtual_pipeline_model_parallel_rank": UNIFORM,
    "megatron.core.parallel_state.get_data_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.get_context_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.get_tensor_and_context_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.get_expert_model_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.get_expert_tensor_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.get_expert_data_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.get_expert_tensor_and_model_parallel_rank": GROUP_RANK,
    "megatron.core.parallel_state.is_pipeline_first_stage": _STAGE,
    "megatron.core.parallel_state.is_pipeline_last_stage": _STAGE,
    "megatron.core.parallel_state.is_rank_in_embedding_group": _STAGE,
    "megatron.core.parallel_state.is_rank_in_position_embedding_group": _STAGE,
    "megatron.core.parallel_state.get_tensor_model_parallel_src_rank": _SRC,
    "megatron.core.parallel_state.get_model_parallel_src_rank": _SRC,
    "megatron.core.parallel_state.get_data_parallel_src_rank": _SRC,
    "megatron.core.parallel_state.get_pipeline_model_parallel_first_rank": _SRC,
    "megatron.core.parallel_state.get_pipeline_model_parallel_last_rank": _SRC,
    "megatron.core.parallel_state.get_pipeline_model_parallel_next_rank": _SRC,
    "megatron.core.parallel_state.get_pipeline_model_parallel_prev_rank": _SRC,
    "megatron.core.utils.get_pg_rank": GROUP_RANK,
    "megatron.core.utils.get_pg_size": _SIZE,
    "megatron.core.utils.get_pg_src_rank": _SRC,
    # checkpoints
    "megatron.core.dist_checkpointing.save": agreed(
        "dist_checkpointing.save",
        event="checkpoint-save",
        raises_local=True,
        paths=(Arg(1, "checkpoint_dir"),),
    ),
    "megatron.core.dist_checkpointing.load": agreed(
        "dist_checkpointing.load", event="checkpoint-load", raises_local=True
    ),
    # autograd-aware collectives of a tensor-parallel layer
    "megatron.core.tensor_parallel.copy_to_tensor_model_parallel_region": Fact(
        result="arg0", event="synced-forward"
    ),
    "megatron.core.tensor_parallel.reduce_from_tensor_model_parallel_region": agreed("all_reduce", _G1),
    "megatron.core.tensor_parallel.scatter_to_tensor_model_parallel_region": Fact(event="synced-forward"),
    "megatron.core.tensor_parallel.gather_from_tensor_model_parallel_region": agreed("all_gather", _G1),
    "megatron.core.tensor_parallel.scatter_to_sequence_parallel_region": Fact(event="synced-forward"),
    "megatron.core.tensor_parallel.gather_from_sequence_parallel_region": agreed(
        "all_gather", Arg(2, "group")
    ),
    "megatron.core.tensor_parallel.reduce_scatter_to_sequence_parallel_region": exchanged(
        "reduce_scatter", _G1
    ),
    "megatron.core.tensor_parallel.all_to_all": exchanged("all_to_all", Arg(0, "group")),
    "megatron.core.tensor_parallel.broadcast_data": agreed("broadcast"),
    "megatron.core.distributed.finalize_model_grads": exchanged("finalize_model_grads"),
    # schedules: every stage takes part in each
    "megatron.core.pipeline_parallel.get_forward_backward_func": Fact(
        result="uniform", returns=_SCHEDULE_TYPE
    ),
    "megatron.core.pipeline_parallel.forward_backward_no_pipelining": _SCHEDULE,
    "megatron.core.pipeline_parallel.forward_backward_pipelining_with_interleaving": _SCHEDULE,
    "megatron.core.pipeline_parallel.forward_backward_pipelining_without_interleaving": _SCHEDULE,
    # Megatron-LM's training package
    "megatron.training.utils.print_rank_0": Fact(),
    "megatron.training.utils.is_rank0": Fact(result="varying", varying="rank", main_only="main"),
    "megatron.training.utils.is_last_rank": Fact(result="varying", varying="rank", main_only="last"),
    "megatron.training.utils.average_losses_across_data_parallel_group": agreed("all_reduce"),
    "megatron.training.utils.reduce_max_stat_across_model_parallel_group": agreed("all_reduce"),
    "megatron.training.utils.logical_and_across_model_parallel_group": agreed("all_reduce"),
    "megatron.training.utils.calc_params_l2_norm": agreed("all_reduce"),
    "megatron.training.checkpointing.save_checkpoint": agreed("save_checkpoint", event="checkpoint-save"),
    "megatron.training.checkpointing.load_checkpoint": agreed("load_checkpoint", event="checkpoint-load"),
}

TYPES: dict[str, TypeFacts] = {
    _SCHEDULE_TYPE: TypeFacts(call=_SCHEDULE),
    "megatron.core.distributed.DistributedDataParallel": TypeFacts(
        bases=("torch.nn.Module",),
        methods={
            "start_grad_sync": exchanged("start_grad_sync"),
            "finish_grad_sync": exchanged("finish_grad_sync"),
            "broadcast_params": agreed("broadcast"),
            "no_sync": Fact(wraps="context", event="no-sync"),
        },
        attributes={"module": Fact(returns="torch.nn.Module", event="unwrap")},
        call=Fact(event="synced-forward"),
    ),
    "megatron.core.process_groups_config.ProcessGroupCollection": TypeFacts(
        attributes=dict.fromkeys(("tp", "pp", "mp", "dp", "cp", "ep", "embd", "dp_cp", "tp_cp"), _GROUP)
    ),
    "megatron.core.utils.StragglerDetector": TypeFacts(attributes={"my_rank": RANK}),
}

PREFIXES: dict[str, str] = {
    "megatron.core.mpu.": "megatron.core.parallel_state.",
    "megatron.mpu.": "megatron.core.parallel_state.",
    "megatron.core.tensor_parallel.mappings.": "megatron.core.tensor_parallel.",
    "megatron.core.tensor_parallel.data.": "megatron.core.tensor_parallel.",
    "megatron.core.pipeline_parallel.schedules.": "megatron.core.pipeline_parallel.",
    "megatron.core.dist_checkpointing.serialization.": "megatron.core.dist_checkpointing.",
    "megatron.core.distributed.finalize_model_grads.": "megatron.core.distributed.",
    "megatron.core.distributed.distributed_data_parallel.": "megatron.core.distributed.",
}

ALIASES: dict[str, str] = {
    "megatron.core.mpu": "megatron.core.parallel_state",
    "megatron.mpu": "megatron.core.parallel_state",
    "megatron.training.print_rank_0": "megatron.training.utils.print_rank_0",
    "megatron.training.is_last_rank": "megatron.training.utils.is_last_rank",
    "megatron.print_rank_0": "megatron.training.utils.print_rank_0",
    "megatron.is_last_rank": "megatron.training.utils.is_last_rank",
}
