"""What the look-up answers, by example: names, aliases, types, conventions, and namesakes of collectives."""

from __future__ import annotations

import pytest
from spmdguard_lint.facts import lookup
from spmdguard_lint.facts.fact import Arg, Fact

COLLECTIVES = {
    "torch.distributed.all_reduce": "all_reduce",
    "torch.distributed.distributed_c10d.all_reduce": "all_reduce",
    "torch.distributed.nn.all_reduce": "all_reduce",
    "torch.distributed.nn.functional.all_gather": "all_gather",
    "torch.distributed._functional_collectives.all_reduce": "all_reduce",
    "torch.distributed._all_gather_base": "all_gather_into_tensor",
    "torch.distributed.device_mesh.init_device_mesh": "init_device_mesh",
    "torch.distributed.checkpoint.state_dict_saver.save": "checkpoint.save",
    "torch.nn.parallel.distributed.DistributedDataParallel": "DistributedDataParallel",
    "torch.distributed.fsdp._fully_shard.fully_shard": "fully_shard",
    "accelerate.utils.operations.gather": "all_gather",
    "accelerate.utils.gather_object": "all_gather_object",
    "deepspeed.comm.comm.all_reduce": "all_reduce",
    "deepspeed.comm.barrier": "barrier",
    "mmengine.dist.dist.collect_results": "collect_results",
    "composer.utils.dist.barrier": "barrier",
    "horovod.torch.mpi_ops.allreduce": "all_reduce",
    "torch_xla.core.xla_model.rendezvous": "rendezvous",
    "spmdguard.sync_should_stop": "sync_should_stop",
    "spmdguard.stop.sync_should_stop": "sync_should_stop",
}

NO_COLLECTIVES = (
    "torch.gather",
    "torch.scatter",
    "torch.nn.parallel.gather",
    "torch.cuda.comm.broadcast",
    "torch.linalg.matrix_rank",
    "asyncio.gather",
    "numpy.broadcast",
    "threading.Barrier",
    "multiprocessing.Barrier",
    "asyncio.Barrier",
    "functools.reduce",
    "torch.distributed.is_initialized",
    "torch.distributed.get_world_size",
)


@pytest.mark.parametrize(("name", "op"), COLLECTIVES.items())
def test_a_collective_is_known_under_all_its_names(name: str, op: str) -> None:
    """Aliases, re-exports and private modules lead to the same operation."""
    fact = lookup.function(name)
    assert fact is not None
    assert op == fact.op


@pytest.mark.parametrize("name", NO_COLLECTIVES)
def test_namesakes_are_no_collectives(name: str) -> None:
    """Functions that share a collective's name, or stand beside one, communicate with nobody."""
    fact = lookup.function(name)
    assert fact is None or fact.op is None


@pytest.mark.parametrize(
    ("type_name", "method"),
    [("torch.Tensor", "gather"), ("threading.Barrier", "wait"), ("torch.nn.Module", "train")],
)
def test_namesake_methods_are_no_collectives(type_name: str, method: str) -> None:
    """A known receiver decides: its method is no collective and needs no guess by name."""
    fact = lookup.method(type_name, method)
    assert fact is not None
    assert fact.op is None


@pytest.mark.parametrize(
    ("name", "type_name"),
    [
        ("torch.distributed.tensor._api.DTensor", "torch.distributed.tensor.DTensor"),
        ("accelerate.accelerator.Accelerator", "accelerate.Accelerator"),
        ("lightning.pytorch.Trainer", "pytorch_lightning.Trainer"),
        ("lightning.Trainer", "pytorch_lightning.Trainer"),
        ("lightning.fabric.Fabric", "lightning_fabric.Fabric"),
        ("pytorch_lightning.callbacks.ModelCheckpoint", "pytorch_lightning.Callback"),
        ("transformers.trainer.Trainer", "transformers.Trainer"),
        ("transformers.Seq2SeqTrainer", "transformers.Trainer"),
        ("trl.trainer.grpo_trainer.GRPOTrainer", "transformers.Trainer"),
        ("torchmetrics.classification.MulticlassAccuracy", "torchmetrics.Metric"),
        ("torch.optim.AdamW", "torch.optim.Optimizer"),
        ("torch.optim.lr_scheduler.CosineAnnealingLR", "torch.optim.lr_scheduler.LRScheduler"),
        ("torch.nn.Linear", "torch.nn.Module"),
        ("deepspeed.runtime.engine.DeepSpeedEngine", "deepspeed.DeepSpeedEngine"),
        ("torch.distributed._composable.fsdp.fully_shard", "torch.distributed.fsdp.FSDPModule"),
        ("boto3.client", "boto3.client"),
        ("pathlib.Path", "pathlib.Path"),
    ],
)
def test_a_constructor_names_the_type(name: str, type_name: str) -> None:
    """Calling a class, a class of a known family, or a function that returns an instance."""
    assert type_name == lookup.constructor(name)


@pytest.mark.parametrize(
    "name",
    [
        "torch.distributed.barrier",  # its handle is returned only if asked for
        "torch.nn.functional.relu",
        "torch.distributed.ReduceOp",
        "accelerate.utils.dataclasses.DistributedType",
        "no.such.thing",
    ],
)
def test_other_names_construct_nothing(name: str) -> None:
    """Functions, enumerations and unknown names make no known instance."""
    assert lookup.constructor(name) is None


def test_methods_are_found_in_base_types() -> None:
    """DDP is a module, TRL's trainers are Trainers, a pipeline engine is an engine."""
    ddp = lookup.method("torch.nn.parallel.DistributedDataParallel", "parameters")
    trainer = lookup.method("trl.SFTTrainer", "evaluate")
    engine = lookup.method("deepspeed.PipelineEngine", "backward")
    assert ddp is not None and ddp.op is None
    assert trainer is not None and trainer.op == "Trainer.evaluate"
    assert engine is not None and engine.op == "backward"


def test_class_qualified_calls_find_the_method() -> None:
    """``FSDP.summon_full_params(...)`` and ``Path.exists(p)`` are calls of methods."""
    summon = lookup.function("torch.distributed.fsdp.FullyShardedDataParallel.summon_full_params")
    exists = lookup.function("pathlib.Path.exists")
    assert summon is not None and (summon.op, summon.wraps) == ("summon_full_params", "context")
    assert exists is not None and exists.varying == "filesystem"


def test_attributes_know_ranks_and_types() -> None:
    """``accelerator.is_main_process``, ``trainer.strategy`` and what lies behind them."""
    main = lookup.attribute("accelerate.Accelerator", "is_main_process")
    strategy = lookup.attribute("lightning.pytorch.Trainer", "strategy")
    assert main is not None and (main.varying, main.main_only) == ("rank", "main")
    assert strategy is not None
    reduce = lookup.method(strategy.returns, "reduce")
    assert reduce is not None and (reduce.op, reduce.result) == ("all_reduce", "uniform")


def test_forward_of_a_wrapped_module_is_synced_and_of_the_plain_one_is_not() -> None:
    """``model(x)`` of DDP, FSDP, an engine; ``model.module(x)`` is local."""
    for wrapped in (
        "torch.nn.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "torch.distributed.fsdp.FSDPModule",
        "deepspeed.DeepSpeedEngine",
        "accelerate.Prepared",
    ):
        call = lookup.call_instance(wrapped)
        assert call is not None and call.event == "synced-forward"
    module = lookup.attribute("torch.nn.parallel.DistributedDataParallel", "module")
    assert module is not None
    plain = lookup.call_instance(module.returns)
    assert plain is not None and plain.op is None
    assert lookup.BACKWARD.op == "backward"


def test_sharding_is_a_property_of_the_type() -> None:
    """FSDP and DTensor are sharded, DDP is not: ``clip_grad_norm_`` communicates for the first only."""
    clip = lookup.function("torch.nn.utils.clip_grad_norm_")
    assert clip is not None and clip.when_sharded
    assert lookup.is_sharded("torch.distributed.fsdp.FullyShardedDataParallel")
    assert not lookup.is_sharded("torch.nn.parallel.DistributedDataParallel")


def test_subclasses_inherit_methods_attributes_and_hooks() -> None:
    """``self.log`` of a LightningModule, ``self.accelerator`` of a Trainer, the parameters of a callback."""
    log = lookup.subclass_method(["lightning.pytorch.LightningModule"], "log")
    accelerator = lookup.subclass_attribute(["transformers.Trainer"], "accelerator")
    compute = lookup.subclass_method(["torchmetrics.Metric"], "compute")
    assert log is not None and log.when == Arg(8, "sync_dist")
    assert accelerator is not None and accelerator.returns == "accelerate.Accelerator"
    assert compute is not None and compute.op == "metric.compute"
    assert lookup.hook_parameters(["lightning.pytorch.Callback"], "on_train_epoch_end") == (
        "pytorch_lightning.Trainer",
        "pytorch_lightning.LightningModule",
    )
    state = lookup.hook_parameters(["transformers.TrainerCallback"], "on_step_end")
    assert state is not None and state[1] == "transformers.TrainerState"
    assert lookup.hook_parameters(["transformers.TrainerCallback"], "my_helper") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("torch.distributed.get_rank", "rank"),
        ("os.path.exists", "filesystem"),
        ("os.listdir", "filesystem"),
        ("time.time", "time"),
        ("datetime.datetime.now", "time"),
        ("random.random", "random"),
        ("numpy.random.rand", "random"),
        ("torch.rand", "random"),
        ("uuid.uuid4", "random"),
        ("socket.gethostname", "environment"),
        ("os.getpid", "environment"),
        ("torch.cuda.memory_allocated", "data"),
        ("megatron.core.mpu.is_pipeline_last_stage", "group-rank"),
        ("spmdguard.has_deferred_error", "exception"),
        ("concurrent.futures.as_completed", "order"),
    ],
)
def test_sources_of_variance_name_their_reason(name: str, kind: str) -> None:
    """Each source says why its value differs between ranks."""
    fact = lookup.function(name)
    assert fact is not None
    assert kind == fact.varying


@pytest.mark.parametrize(
    "name",
    [
        "torch.distributed.get_world_size",
        "torch.distributed.is_initialized",
        "torch.cuda.is_available",
        "torch.cuda.device_count",
        "megatron.core.mpu.get_data_parallel_world_size",
    ],
)
def test_sizes_and_states_are_uniform(name: str) -> None:
    """What every rank answers alike is no rank source."""
    fact = lookup.function(name)
    assert fact is not None
    assert fact.result == "uniform"


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("builtins.open", "open"),
        ("os.makedirs", "mkdir"),
        ("os.replace", "rename"),
        ("shutil.rmtree", "remove"),
        ("torch.save", "write"),
        ("json.load", "read"),
        ("mlflow.log_metric", "tracker-log"),
        ("mlflow.pytorch.log_model", "tracker-log"),
        ("wandb.init", "tracker-start"),
        ("wandb.run.log", "tracker-log"),
        ("mlflow.end_run", "tracker-end"),
        ("requests.get", "network"),
        ("huggingface_hub.upload_folder", "upload"),
    ],
)
def test_operations_that_may_fail_on_one_rank(name: str, event: str) -> None:
    """Files, network and trackers raise on one rank alone, and say what they do."""
    fact = lookup.function(name)
    assert fact is not None
    assert (True, event) == (fact.raises_local, fact.event)


def test_the_library_class_itself_does_not_fail() -> None:
    """Making a tracker's value object is no use of the network."""
    assert lookup.function("wandb.Artifact") is None


@pytest.mark.parametrize("name", ["sys.exit", "builtins.exit", "os._exit", "os.abort"])
def test_exits_do_not_return(name: str) -> None:
    """After an exit nothing follows."""
    fact = lookup.function(name)
    assert fact is not None and fact.noreturn


def test_environment_variables() -> None:
    """Ranks and hosts vary, sizes and addresses do not."""
    assert lookup.environment("RANK") == Fact(result="varying", varying="rank")
    local = lookup.environment("LOCAL_RANK")
    host = lookup.environment("HOSTNAME")
    assert local is not None and local.event == "local-rank"
    assert host is not None and host.varying == "environment"
    for key in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"):
        assert lookup.environment(key) is None


def test_conventional_names_are_graded() -> None:
    """``rank`` alone is a weak hint, ``local_rank`` a good one, ``lora_rank`` none."""
    rank = lookup.conventional_name("rank")
    local = lookup.conventional_name("local_rank")
    main = lookup.conventional_name("is_main_process")
    assert rank is not None and rank.certainty == "possible"
    assert local is not None and local.certainty == "likely"
    assert main is not None and main.main_only == "main"
    for name in ("lora_rank", "ranks", "ranking", "matrix_rank", "r", "index"):
        assert lookup.conventional_name(name) is None


def test_unknown_receivers_count_only_for_distinctive_methods() -> None:
    """``x.wait_for_everyone()`` is a barrier; ``x.gather()``, ``x.reduce()``, ``x.wait()`` say nothing."""
    barrier = lookup.unknown_method("wait_for_everyone", 0)
    assert barrier is not None and barrier.op == "barrier"
    assert lookup.unknown_method("wait_for_everyone", 3) is None
    for name in ("gather", "scatter", "broadcast", "reduce", "wait", "step", "save", "all", "sync"):
        assert lookup.unknown_method(name, 1) is None
    predicate = lookup.unknown_attribute("is_global_zero")
    assert predicate is not None and predicate.main_only == "main"
    assert lookup.unknown_attribute("shape") is None


def test_only_the_root_varies_which_rank_gets_a_result() -> None:
    """gather, scatter and reduce leave different data behind; all_gather and broadcast the same."""
    for name in ("reduce", "gather", "scatter", "reduce_scatter", "all_to_all", "scatter_object_list"):
        fact = lookup.function(f"torch.distributed.{name}")
        assert fact is not None and fact.result == "varying" and fact.outputs and not fact.buffers
    for name in ("all_reduce", "all_gather", "broadcast", "broadcast_object_list", "all_gather_object"):
        fact = lookup.function(f"torch.distributed.{name}")
        assert fact is not None and fact.result == "uniform" and fact.buffers and not fact.outputs


def test_tuples_of_rank_and_size_are_told_apart() -> None:
    """``rank, world = get_dist_info()``: one varies, the other does not; torchtune has them the other way."""
    mmengine = lookup.function("mmengine.dist.get_dist_info")
    torchtune = lookup.function("torchtune.training.get_world_size_and_rank")
    assert mmengine is not None and torchtune is not None
    assert [part.varying for part in mmengine.parts] == ["rank", ""]
    assert [part.varying for part in torchtune.parts] == ["", "rank"]


def test_own_api() -> None:
    """spmdguard's deferral swallows, its agreements are uniform collectives."""
    for name in ("rank_local", "try_or_defer", "deferring"):
        fact = lookup.function(f"spmdguard.{name}")
        assert fact is not None and fact.suppresses and fact.event == "defer"
    stop = lookup.function("spmdguard.sync_should_stop")
    assert stop is not None and (stop.event, stop.result, stop.kind) == ("sync-stop", "uniform", "collective")
    again = lookup.function("spmdguard.raise_if_deferred_error")
    assert again is not None and again.event == "raise-if-deferred"
