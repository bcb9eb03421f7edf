"""Facts on Hugging Face Transformers, TRL, PEFT and torchmetrics (read from transformers 5.24, trl 1.16)."""

from __future__ import annotations

from .build import (
    ENTRY_METRIC,
    ENTRY_STATE,
    IS_LOCAL_MAIN,
    IS_MAIN,
    LOCAL_METRIC,
    LOCAL_RANK,
    METRIC,
    MODULE,
    PURE,
    RANK,
    UNIFORM,
    WORLD_SIZE,
    agreed,
    exchanged,
    local,
    varying,
)
from .fact import Arg, Fact, TypeFacts

TRAINER = "transformers.Trainer"
ARGUMENTS = "transformers.TrainingArguments"
STATE = "transformers.TrainerState"
CALLBACK = "transformers.TrainerCallback"
MODEL = "transformers.PreTrainedModel"
TRAINED = "transformers.Trainer, its own model"
_SHARED_METRIC = "evaluate.PreparedModule"  # of which each process has a part

_HOOK = (ARGUMENTS, STATE, "transformers.TrainerControl")
_MAIN_FIRST = agreed("main_process_first", wraps="context", event="main-first")
# with these settings the trainer's model gathers its parameters layer by layer, also where it is used by hand
_SHARDED = (
    r"[\"']stage[\"']\s*:\s*3\b|\bzero_?stage[\"']?\s*[=:]\s*3\b|zero_?3[\w-]*\.json"
    r"|\bfsdp[\"']?\s*[=:]\s*(?:[\"'][a-z]|\[)"
)
_SHARDED_FORWARD = exchanged("forward of a sharded model", told=_SHARDED, certainty="likely")
_METRIC_STEP = exchanged("metric.forward", certainty="possible")

FUNCTIONS: dict[str, Fact] = {
    "transformers.set_seed": Fact(event="seed-all", result="uniform"),
    "transformers.enable_full_determinism": Fact(event="seed-all", result="uniform"),
    "transformers.trainer_pt_utils.torch_distributed_zero_first": _MAIN_FIRST,
    "transformers.trainer_pt_utils.distributed_concat": agreed("all_gather"),
    "transformers.trainer_pt_utils.distributed_broadcast_scalars": agreed("all_gather"),
    "transformers.trainer_pt_utils.nested_gather": agreed("all_gather"),
    "transformers.trainer_utils.is_main_process": IS_MAIN,
    "transformers.trainer_utils.get_last_checkpoint": varying("filesystem", raises_local=True, event="read"),
    "transformers.is_torch_available": UNIFORM,
    "transformers.integrations.is_deepspeed_zero3_enabled": UNIFORM,
    "torchmetrics.utilities.distributed.gather_all_tensors": agreed("all_gather", Arg(1, "group")),
    "evaluate.load": local(
        "download", returns="evaluate.EvaluationModule", returns_if=(Arg(3, "process_id"), _SHARED_METRIC)
    ),
    "peft.get_peft_model": Fact(result="arg0", returns=MODULE),
}

_PREDICT = agreed("Trainer.evaluate")

TYPES: dict[str, TypeFacts] = {
    TRAINER: TypeFacts(
        methods={
            "train": agreed("Trainer.train", paths=(Arg(0, "resume_from_checkpoint"),)),
            "evaluate": _PREDICT,
            "predict": _PREDICT,
            "evaluation_loop": _PREDICT,
            "training_step": exchanged("Trainer.training_step", certainty="likely"),
            "save_model": agreed("Trainer.save_model", event="checkpoint-save", certainty="likely"),
            "_save_checkpoint": agreed("Trainer.save_checkpoint", event="checkpoint-save"),
            "push_to_hub": agreed("Trainer.save_model", event="upload", certainty="likely"),
            "store_flos": agreed("all_gather", certainty="likely"),
            "_nested_gather": agreed("all_gather"),
            "hyperparameter_search": agreed("Trainer.train"),
            "save_state": local("write", main_only="main"),
            "save_metrics": local("write", main_only="main"),
            "log_metrics": PURE,
            "log": local("tracker-log"),
            "create_model_card": local("write", main_only="main"),
            "init_hf_repo": local("network", main_only="main"),
            "is_world_process_zero": IS_MAIN,
            "is_local_process_zero": IS_LOCAL_MAIN,
            "add_callback": PURE,
            "get_train_dataloader": Fact(returns="accelerate.PreparedLoader"),
            "get_eval_dataloader": Fact(returns="accelerate.PreparedLoader"),
        },
        attributes={
            "accelerator": Fact(returns="accelerate.Accelerator"),
            "args": Fact(returns=ARGUMENTS),
            "state": Fact(returns=STATE),
            "model": Fact(returns=TRAINED),
            "model_wrapped": Fact(returns="accelerate.Prepared"),
            "is_fsdp_enabled": UNIFORM,
            "is_deepspeed_enabled": UNIFORM,
        },
        hooks={"compute_loss": ("", "", "", "")},
    ),
    ARGUMENTS: TypeFacts(
        methods={"main_process_first": _MAIN_FIRST, "get_process_log_level": varying("rank")},
        attributes={
            "process_index": RANK,
            "local_process_index": LOCAL_RANK,
            "local_rank": LOCAL_RANK,
            "world_size": WORLD_SIZE,
            "should_save": IS_MAIN,
            "should_log": IS_MAIN,
            "device": Fact(result="uniform", event="device"),
            "n_gpu": UNIFORM,
            "parallel_mode": UNIFORM,
            "distributed_state": Fact(returns="accelerate.PartialState"),
        },
    ),
    STATE: TypeFacts(
        methods={"save_to_json": local("write")},
        attributes={
            "is_world_process_zero": IS_MAIN,
            "is_local_process_zero": IS_LOCAL_MAIN,
            "global_step": UNIFORM,
            "epoch": UNIFORM,
            "max_steps": UNIFORM,
        },
    ),
    "transformers.TrainerControl": TypeFacts(
        attributes={
            "should_training_stop": Fact(event="stop-flag"),
            "should_epoch_stop": Fact(event="stop-flag"),
            "should_save": Fact(event="request-flag"),
            "should_evaluate": Fact(event="request-flag"),
            "should_log": Fact(event="request-flag"),
        }
    ),
    CALLBACK: TypeFacts(
        attributes={"trainer": Fact(returns=TRAINER), "model": Fact(returns=TRAINED)},
        hooks={
            "on_init_end": _HOOK,
            "on_train_begin": _HOOK,
            "on_train_end": _HOOK,
            "on_epoch_begin": _HOOK,
            "on_epoch_end": _HOOK,
            "on_step_begin": _HOOK,
            "on_pre_optimizer_step": _HOOK,
            "on_optimizer_step": _HOOK,
            "on_substep_end": _HOOK,
            "on_step_end": _HOOK,
            "on_evaluate": _HOOK,
            "on_predict": (*_HOOK, ""),
            "on_save": _HOOK,
            "on_log": _HOOK,
            "on_prediction_step": _HOOK,
        },
    ),
    MODEL: TypeFacts(
        bases=(MODULE,),
        methods={
            "save_pretrained": local("write"),
            "push_to_hub": local("upload"),
            "from_pretrained": local("download", returns=MODEL),
            "generate": Fact(result="varying", varying="data"),
        },
    ),
    TRAINED: TypeFacts(
        bases=(MODEL,),
        methods={"generate": _SHARDED_FORWARD, "forward": _SHARDED_FORWARD},
        call=_SHARDED_FORWARD,
    ),
    "transformers.PreTrainedTokenizerBase": TypeFacts(
        methods={
            "save_pretrained": local("write"),
            "push_to_hub": local("upload"),
            "from_pretrained": local("download", returns="transformers.PreTrainedTokenizerBase"),
        },
    ),
    METRIC: TypeFacts(
        bases=(MODULE,),
        methods={
            "compute": agreed("metric.compute", certainty="likely"),
            "forward": _METRIC_STEP,
            "update": PURE,
            "reset": PURE,
            "sync": agreed("metric.sync", certainty="likely"),
            "unsync": PURE,
            "sync_context": agreed("metric.sync", wraps="context", certainty="likely"),
            "clone": Fact(result="receiver"),
            "state_dict": PURE,
            "_sync_dist": agreed("metric.sync", certainty="likely"),
            "add_state": Fact(event="metric-state"),
        },
        call=_METRIC_STEP,
        hooks={"update": ("data",) * 8},
    ),
    ENTRY_STATE: TypeFacts(
        methods={
            "append": Fact(op="metric entry", kind="request", certainty="likely"),
            "extend": Fact(op="metric entry", kind="request", certainty="likely", each=Arg(0, "iterable")),
        }
    ),
    # states without a reduction: computing gathers entry by entry, so all ranks must have made as many updates
    ENTRY_METRIC: TypeFacts(
        bases=(METRIC,),
        methods={"update": Fact(op="metric.update", kind="request", certainty="likely")},
    ),
    LOCAL_METRIC: TypeFacts(
        bases=(MODULE,),
        methods=dict.fromkeys(("compute", "forward", "update", "reset", "unsync", "state_dict"), PURE)
        | {"clone": Fact(result="receiver"), "sync": agreed("metric.sync", certainty="likely")},
        call=PURE,
    ),
    "evaluate.EvaluationModule": TypeFacts(
        methods={"compute": local("read"), "add_batch": local("write"), "add": local("write")}
    ),
    # each process hands in its part, for which the first one waits
    _SHARED_METRIC: TypeFacts(
        bases=("evaluate.EvaluationModule",),
        methods={
            "compute": exchanged("evaluate.compute", certainty="likely", raises_local=True, event="read")
        },
    ),
}

ALIASES: dict[str, str] = {
    "transformers.deepspeed.is_deepspeed_zero3_enabled": (
        "transformers.integrations.is_deepspeed_zero3_enabled"
    ),
    "torchmetrics.metric.Metric": METRIC,
    "torchmetrics.MetricCollection": METRIC,
    "torchmetrics.collections.MetricCollection": METRIC,
}

CLASS_PATTERNS: tuple[tuple[str, str, str], ...] = (
    ("transformers.", "TrainingArguments", ARGUMENTS),
    ("transformers.", "Trainer", TRAINER),
    ("transformers.", "Callback", CALLBACK),
    ("transformers.", "Tokenizer", "transformers.PreTrainedTokenizerBase"),
    ("transformers.", "TokenizerFast", "transformers.PreTrainedTokenizerBase"),
    ("transformers.AutoModel", "", MODEL),
    ("transformers.", "Model", MODEL),
    ("transformers.", "LMHeadModel", MODEL),
    ("transformers.", "ForConditionalGeneration", MODEL),
    ("transformers.", "ForCausalLM", MODEL),
    ("transformers.", "ForSequenceClassification", MODEL),
    ("transformers.", "ForMaskedLM", MODEL),
    ("trl.", "Trainer", TRAINER),
    ("trl.", "Config", ARGUMENTS),
    ("sentence_transformers.", "Trainer", TRAINER),
    ("peft.PeftModel", "", MODEL),
    ("torchmetrics.", "MeanAveragePrecision", ENTRY_METRIC),
    ("torchmetrics.Retrieval", "", ENTRY_METRIC),
    ("torchmetrics.retrieval.", "", ENTRY_METRIC),
    ("torchmetrics.", "", METRIC),
)

LOOSE_ROOTS: tuple[str, ...] = ("transformers.", "torchmetrics.")
