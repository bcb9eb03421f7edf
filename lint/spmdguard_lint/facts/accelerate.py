"""Facts on Hugging Face Accelerate (read from 1.15)."""

from __future__ import annotations

from .build import (
    BARRIER,
    IS_LAST,
    IS_LOCAL_MAIN,
    IS_MAIN,
    LOCAL_RANK,
    MAIN_DECORATOR,
    MODULE,
    PURE,
    RANK,
    SHARDS,
    UNIFORM,
    WORLD_SIZE,
    agreed,
    choosing,
    exchanged,
    lifecycle,
    local,
    varying,
)
from .fact import Arg, Fact, TypeFacts

ACCELERATOR = "accelerate.Accelerator"
STATE = "accelerate.PartialState"
PREPARED = "accelerate.Prepared"

_DEVICE = Fact(result="uniform", event="device")  # its type is what code asks for; the index differs
_MAIN_FIRST = agreed("main_process_first", wraps="context", event="main-first")
_LOCAL_MAIN_FIRST = agreed("local_main_process_first", wraps="context", event="main-first")
_SPLIT = Fact(wraps="context", result="varying", varying="data", event="split")
_LOCAL_MAIN_DECORATOR = Fact(wraps="decorator", main_only="local_main")
_LAST_DECORATOR = Fact(wraps="decorator", main_only="last")
_ONE_DECORATOR = Fact(wraps="decorator", main_only="one")
_WRAP = Fact(op="accelerate.prepare", kind="collective", result="args", returns=PREPARED, event="wrap-module")
_TRACKER = local("tracker-log", main_only="main")
_FORWARD = exchanged("DDP.forward", event="synced-forward", certainty="likely")

_IDENTITY: dict[str, Fact] = {
    "is_main_process": IS_MAIN,
    "is_local_main_process": IS_LOCAL_MAIN,
    "is_last_process": IS_LAST,
    "process_index": RANK,
    "local_process_index": LOCAL_RANK,
    "num_processes": WORLD_SIZE,
    "use_distributed": UNIFORM,
    "multi_device": UNIFORM,
    "distributed_type": UNIFORM,
    "initialized": UNIFORM,
    "device": _DEVICE,
}

_WHOLE_GROUP: dict[str, Fact] = {
    "wait_for_everyone": BARRIER,
    "main_process_first": _MAIN_FIRST,
    "local_main_process_first": _LOCAL_MAIN_FIRST,
    "split_between_processes": _SPLIT,
    "on_main_process": MAIN_DECORATOR,
    "on_local_main_process": _LOCAL_MAIN_DECORATOR,
    "on_last_process": _LAST_DECORATOR,
    "on_process": _ONE_DECORATOR,
    "on_local_process": _ONE_DECORATOR,
    "print": PURE,
}

_SKIP = Fact(result="arg0", trips=Arg(1, "num_batches"))

FUNCTIONS: dict[str, Fact] = {
    ACCELERATOR: lifecycle("init_process_group", None, "init", returns=ACCELERATOR),
    STATE: lifecycle("init_process_group", None, "init", returns=STATE),
    "accelerate.state.AcceleratorState": lifecycle(
        "init_process_group", None, "init", returns="accelerate.state.AcceleratorState"
    ),
    "accelerate.utils.gather": agreed("all_gather"),
    "accelerate.utils.gather_object": agreed("all_gather_object"),
    "accelerate.utils.broadcast": agreed("broadcast", root=Arg(1, "from_process")),
    "accelerate.utils.broadcast_object_list": agreed(
        "broadcast_object_list", None, Arg(0, "object_list"), root=Arg(1, "from_process")
    ),
    "accelerate.utils.reduce": agreed("all_reduce"),
    "accelerate.utils.pad_across_processes": exchanged("pad_across_processes"),
    "accelerate.utils.wait_for_everyone": BARRIER,
    "accelerate.utils.set_seed": Fact(event="seed-all", result="uniform"),
    "accelerate.utils.synchronize_rng_state": agreed("broadcast", event="seed-all"),
    "accelerate.utils.synchronize_rng_states": agreed("broadcast", event="seed-all"),
    "accelerate.utils.save": local("write", main_only="main"),
    "accelerate.utils.load": local("read"),
    "accelerate.utils.save_fsdp_model": agreed(
        "save_fsdp_model", event="checkpoint-save", paths=(Arg(3, "output_dir"),)
    ),
    "accelerate.utils.save_fsdp_optimizer": agreed(
        "save_fsdp_optimizer", event="checkpoint-save", paths=(Arg(4, "output_dir"),)
    ),
    "accelerate.utils.load_fsdp_model": agreed("load_fsdp_model", event="checkpoint-load"),
    "accelerate.utils.load_fsdp_optimizer": agreed("load_fsdp_optimizer", event="checkpoint-load"),
    "accelerate.utils.extract_model_from_parallel": Fact(returns=MODULE, event="unwrap"),
    "accelerate.utils.find_executable_batch_size": Fact(wraps="decorator", event="oom-retry"),
    "accelerate.notebook_launcher": Fact(wraps="spawn", event="spawn"),
    "accelerate.debug_launcher": Fact(wraps="spawn", event="spawn"),
    "accelerate.skip_first_batches": _SKIP,
    "accelerate.tracking.on_main_process": MAIN_DECORATOR,
    "accelerate.logging.get_logger": Fact(returns="accelerate.logging.MultiProcessAdapter"),
}

TYPES: dict[str, TypeFacts] = {
    ACCELERATOR: TypeFacts(
        methods={
            **_WHOLE_GROUP,
            "prepare": _WRAP,
            "prepare_model": agreed("accelerate.prepare", returns=PREPARED, event="wrap-module"),
            "prepare_data_loader": Fact(returns="accelerate.PreparedLoader"),
            "prepare_optimizer": Fact(result="arg0"),
            "prepare_scheduler": Fact(result="arg0"),
            "backward": agreed("backward", event="backward", certainty="likely"),
            "set_trigger": Fact(event="set-trigger"),
            "check_trigger": agreed("all_reduce", event="sync-stop"),
            "gather": agreed("all_gather"),
            "gather_for_metrics": agreed("all_gather"),
            "reduce": agreed("all_reduce"),
            "pad_across_processes": exchanged("pad_across_processes"),
            "clip_grad_norm_": agreed("clip_grad_norm_", certainty="possible", sure_if_told=SHARDS),
            "clip_grad_value_": PURE,
            "unwrap_model": Fact(returns=MODULE, event="unwrap"),
            "get_state_dict": exchanged("accelerate.get_state_dict", certainty="likely"),
            "save_model": agreed("accelerate.save_model", event="checkpoint-save", certainty="likely"),
            "save_state": agreed(
                "accelerate.save_state",
                event="checkpoint-save",
                raises_local=True,
                paths=(Arg(0, "output_dir"),),
            ),
            "load_state": agreed(
                "accelerate.load_state",
                event="checkpoint-load",
                raises_local=True,
                paths=(Arg(0, "input_dir"),),
            ),
            "save": local("write", main_only="main"),
            "init_trackers": local("tracker-start", main_only="main"),
            "log": _TRACKER,
            "end_training": lifecycle("destroy_process_group", None, "destroy", raises_local=True),
            "get_tracker": Fact(returns="accelerate.tracking.GeneralTracker"),
            "accumulate": Fact(wraps="context"),
            "no_sync": Fact(wraps="context", event="no-sync"),
            "join_uneven_inputs": exchanged("Join", wraps="context", event="join"),
            "autocast": Fact(wraps="context"),
            "profile": Fact(wraps="context"),
            "skip_first_batches": _SKIP,
            "free_memory": PURE,
            "register_for_checkpointing": PURE,
        },
        attributes={
            **_IDENTITY,
            "sync_gradients": UNIFORM,
            "gradient_accumulation_steps": UNIFORM,
            "even_batches": UNIFORM,
            "mixed_precision": UNIFORM,
            "optimizer_step_was_skipped": varying("data", certainty="possible"),
            "state": Fact(returns="accelerate.state.AcceleratorState"),
            "gradient_state": Fact(returns="accelerate.state.GradientState"),
            "tensor_parallel_rank": varying("group-rank"),
            "pipeline_parallel_rank": varying("group-rank"),
            "context_parallel_rank": varying("group-rank"),
            "data_parallel_rank": varying("group-rank"),
            "data_parallel_shard_rank": varying("group-rank"),
            "should_save_model": IS_MAIN,
        },
    ),
    STATE: TypeFacts(
        methods={
            **_WHOLE_GROUP,
            "set_device": Fact(event="set-device"),
            "destroy_process_group": lifecycle("destroy_process_group", Arg(0, "group"), "destroy"),
        },
        attributes=_IDENTITY,
    ),
    "accelerate.state.AcceleratorState": TypeFacts(bases=(STATE,)),
    "accelerate.state.GradientState": TypeFacts(
        methods={"_set_sync_gradients": choosing("sync_gradients")},
        attributes={"end_of_dataloader": UNIFORM, "sync_gradients": UNIFORM, "remainder": UNIFORM},
    ),
    # what ``prepare`` returns for an argument: a wrapped module, loader or optimizer
    PREPARED: TypeFacts(
        bases=(MODULE,),
        methods={
            "forward": _FORWARD,
            "no_sync": Fact(wraps="context", event="no-sync"),
            "state_dict": Fact(
                op="FSDP.state_dict",
                kind="collective",
                told=SHARDS,
                unless_named="(?i)optim|sched|loader|sampler",  # what was prepared beside the model
                event="state-dict",
                certainty="likely",
            ),
        },
        attributes={"module": Fact(returns=MODULE, event="unwrap")},
        call=_FORWARD,
        iterate=varying("data", event="uniform-count"),
    ),
    "accelerate.PreparedLoader": TypeFacts(iterate=varying("data", event="uniform-count")),
    "accelerate.logging.MultiProcessAdapter": TypeFacts(other=PURE),
    "accelerate.tracking.GeneralTracker": TypeFacts(
        methods={"finish": local("tracker-end"), "start": local("tracker-start")}, other=local("tracker-log")
    ),
}

LOOSE_ROOTS: tuple[str, ...] = ("accelerate.",)
