"""Facts on other ways to run many ranks: Horovod, Ignite, torch_xla, mpi4py, Ray Train, SMDDP."""

from __future__ import annotations

from .build import (
    IS_MAIN,
    LOCAL_RANK,
    NODE_RANK,
    PURE,
    RANK,
    UNIFORM,
    WORLD_SIZE,
    agreed,
    exchanged,
    lifecycle,
    paired,
    varying,
)
from .fact import Arg, Fact, TypeFacts

COMM = "mpi4py.MPI.Comm"
_TENSOR = Arg(0, "tensor")
_ROOT_1 = Arg(1, "root_rank")
_ROOT = Arg(1, "root")
_OPTIMIZER = "torch.optim.Optimizer"

FUNCTIONS: dict[str, Fact] = {
    # Horovod
    "horovod.torch.init": lifecycle("init_process_group", None, "init"),
    "horovod.torch.shutdown": lifecycle("destroy_process_group", None, "destroy"),
    "horovod.torch.rank": RANK,
    "horovod.torch.local_rank": LOCAL_RANK,
    "horovod.torch.cross_rank": NODE_RANK,
    "horovod.torch.size": WORLD_SIZE,
    "horovod.torch.local_size": WORLD_SIZE,
    "horovod.torch.is_initialized": UNIFORM,
    "horovod.torch.allreduce": agreed("all_reduce"),
    "horovod.torch.allreduce_": agreed("all_reduce", None, _TENSOR),
    "horovod.torch.allreduce_async": agreed("all_reduce", async_handle=True),
    "horovod.torch.allreduce_async_": agreed("all_reduce", None, _TENSOR, async_handle=True),
    "horovod.torch.grouped_allreduce": agreed("all_reduce"),
    "horovod.torch.allgather": agreed("all_gather"),
    "horovod.torch.allgather_object": agreed("all_gather_object"),
    "horovod.torch.allgather_async": agreed("all_gather", async_handle=True),
    "horovod.torch.broadcast": agreed("broadcast", root=_ROOT_1),
    "horovod.torch.broadcast_": agreed("broadcast", None, _TENSOR, root=_ROOT_1),
    "horovod.torch.broadcast_object": agreed("broadcast_object_list", root=_ROOT_1),
    "horovod.torch.broadcast_parameters": agreed("broadcast", None, Arg(0, "params"), root=_ROOT_1),
    "horovod.torch.broadcast_optimizer_state": agreed("broadcast", root=_ROOT_1),
    "horovod.torch.alltoall": exchanged("all_to_all"),
    "horovod.torch.reducescatter": exchanged("reduce_scatter"),
    "horovod.torch.barrier": agreed("barrier", event="barrier"),
    "horovod.torch.join": agreed("Join", event="join"),
    "horovod.torch.synchronize": Fact(event="wait"),
    "horovod.torch.DistributedOptimizer": Fact(result="arg0", returns="horovod.torch.DistributedOptimizer"),
    # Ignite
    "ignite.distributed.get_rank": RANK,
    "ignite.distributed.get_local_rank": LOCAL_RANK,
    "ignite.distributed.get_node_rank": NODE_RANK,
    "ignite.distributed.get_world_size": WORLD_SIZE,
    "ignite.distributed.all_reduce": agreed("all_reduce", Arg(2, "group")),
    "ignite.distributed.all_gather": agreed("all_gather", Arg(1, "group")),
    "ignite.distributed.broadcast": agreed("broadcast", root=Arg(1, "src")),
    "ignite.distributed.barrier": agreed("barrier", event="barrier"),
    "ignite.distributed.initialize": lifecycle("init_process_group", None, "init"),
    "ignite.distributed.finalize": lifecycle("destroy_process_group", None, "destroy"),
    "ignite.distributed.one_rank_only": Fact(wraps="decorator", main_only="main"),
    "ignite.distributed.one_rank_first": agreed("main_process_first", wraps="context", event="main-first"),
    "ignite.distributed.auto_model": agreed(
        "DistributedDataParallel",
        returns="torch.nn.parallel.DistributedDataParallel",
        event="wrap-module",
    ),
    # torch_xla
    "torch_xla.core.xla_model.get_ordinal": RANK,
    "torch_xla.core.xla_model.get_local_ordinal": LOCAL_RANK,
    "torch_xla.core.xla_model.xrt_world_size": WORLD_SIZE,
    "torch_xla.core.xla_model.is_master_ordinal": IS_MAIN,
    "torch_xla.core.xla_model.master_print": PURE,
    "torch_xla.core.xla_model.rendezvous": agreed("rendezvous", event="barrier"),
    "torch_xla.core.xla_model.mesh_reduce": agreed("all_gather"),
    "torch_xla.core.xla_model.all_reduce": agreed("all_reduce", None, Arg(1, "inputs")),
    "torch_xla.core.xla_model.all_gather": agreed("all_gather"),
    "torch_xla.core.xla_model.all_to_all": exchanged("all_to_all"),
    "torch_xla.core.xla_model.reduce_scatter": exchanged("reduce_scatter"),
    "torch_xla.core.xla_model.collective_broadcast": agreed("broadcast", None, Arg(0, "tensors")),
    "torch_xla.core.xla_model.broadcast_master_param": agreed("broadcast", None, Arg(0, "model")),
    "torch_xla.core.xla_model.optimizer_step": exchanged("xm.optimizer_step", event="optimizer-step"),
    "torch_xla.core.xla_model.reduce_gradients": agreed("all_reduce"),
    "torch_xla.core.xla_model.mark_step": PURE,
    "torch_xla.core.xla_model.save": agreed("rendezvous", event="checkpoint-save", raises_local=True),
    "torch_xla.runtime.global_ordinal": RANK,
    "torch_xla.runtime.local_ordinal": LOCAL_RANK,
    "torch_xla.runtime.process_index": RANK,
    "torch_xla.runtime.world_size": WORLD_SIZE,
    "torch_xla.distributed.xla_multiprocessing.spawn": Fact(wraps="spawn", event="spawn"),
    "torch_xla.launch": Fact(wraps="spawn", event="spawn"),
    # Ray Train
    "ray.train.torch.prepare_model": agreed(
        "DistributedDataParallel",
        returns="torch.nn.parallel.DistributedDataParallel",
        event="wrap-module",
    ),
    "ray.train.torch.prepare_data_loader": Fact(returns="accelerate.PreparedLoader"),
    "ray.train.get_context": Fact(returns="ray.train.TrainContext"),
    # all workers meet before they upload their files, and none waits for the others' uploads
    "ray.train.report": agreed("ray.train.report", certainty="likely", event="read"),
    "ray.train.Checkpoint.from_directory": Fact(result="arg0"),
    # JAX on many hosts, for scripts that mix
    "jax.process_index": RANK,
    "jax.process_count": WORLD_SIZE,
    "jax.distributed.initialize": lifecycle("init_process_group", None, "init"),
    "jax.experimental.multihost_utils.sync_global_devices": agreed("barrier", event="barrier"),
}

TYPES: dict[str, TypeFacts] = {
    COMM: TypeFacts(
        methods={
            "Get_rank": RANK,
            "Get_size": WORLD_SIZE,
            "Barrier": agreed("barrier", event="barrier"),
            "barrier": agreed("barrier", event="barrier"),
            "bcast": agreed("broadcast", root=_ROOT),
            "Bcast": agreed("broadcast", None, Arg(0, "buf"), root=_ROOT),
            "allreduce": agreed("all_reduce"),
            "Allreduce": agreed("all_reduce", None, Arg(1, "recvbuf")),
            "allgather": agreed("all_gather"),
            "Allgather": agreed("all_gather", None, Arg(1, "recvbuf")),
            "gather": exchanged("gather", root=_ROOT),
            "Gather": exchanged("gather", None, Arg(1, "recvbuf"), root=Arg(2, "root")),
            "scatter": exchanged("scatter", root=_ROOT),
            "Scatter": exchanged("scatter", None, Arg(1, "recvbuf"), root=Arg(2, "root")),
            "reduce": exchanged("reduce", root=Arg(2, "root")),
            "Reduce": exchanged("reduce", None, Arg(1, "recvbuf"), root=Arg(3, "root")),
            "alltoall": exchanged("all_to_all"),
            "Alltoall": exchanged("all_to_all", None, Arg(1, "recvbuf")),
            "scan": exchanged("scan"),
            "Split": lifecycle("new_group", None, "new-group", returns=COMM),
            "Dup": lifecycle("new_group", None, "new-group", returns=COMM),
            "Free": lifecycle("free", None, "destroy"),
            "Abort": Fact(noreturn=True, event="hard-exit"),
            "send": paired("send"),
            "Send": paired("send"),
            "recv": paired("recv", result="varying", varying="data"),
            "Recv": paired("recv", None, Arg(0, "buf")),
            "isend": paired("isend", async_handle=True),
            "irecv": paired("irecv", async_handle=True),
        },
        attributes={"rank": RANK, "size": WORLD_SIZE},
    ),
    "horovod.torch.DistributedOptimizer": TypeFacts(
        bases=(_OPTIMIZER,),
        methods={
            "step": exchanged("hvd.step", event="optimizer-step"),
            "synchronize": exchanged("hvd.synchronize"),
        },
    ),
    "ray.train.TrainContext": TypeFacts(
        methods={
            "get_world_rank": RANK,
            "get_local_rank": LOCAL_RANK,
            "get_node_rank": NODE_RANK,
            "get_world_size": WORLD_SIZE,
        }
    ),
    "ignite.metrics.Metric": TypeFacts(methods={"compute": agreed("metric.compute", certainty="likely")}),
    "ignite.engine.Engine": TypeFacts(
        methods={"run": agreed("Engine.run"), "on": Fact(wraps="decorator"), "terminate": varying("data")}
    ),
}

CONSTANTS: dict[str, Fact] = {
    "mpi4py.MPI.COMM_WORLD": Fact(result="uniform", returns=COMM, event="default-group"),
    "mpi4py.MPI.COMM_SELF": Fact(result="uniform"),
}

ALIASES: dict[str, str] = {
    "ray.air.session.report": "ray.train.report",
    "ray.train._checkpoint.Checkpoint": "ray.train.Checkpoint",
    "torch_xla.runtime.global_device_count": "torch_xla.runtime.world_size",
    "mpi4py.MPI.Intracomm": COMM,
    "horovod.torch.mpi_ops": "horovod.torch",
    "horovod.torch.functions": "horovod.torch",
    "horovod.tensorflow": "horovod.torch",
    "horovod.keras": "horovod.torch",
    "horovod.tensorflow.keras": "horovod.torch",
    "ignite.distributed.utils": "ignite.distributed",
    "torch_xla.distributed.xla_multiprocessing.MpDeviceLoader": "accelerate.PreparedLoader",
}

CLASS_PATTERNS: tuple[tuple[str, str, str], ...] = (("ignite.metrics.", "", "ignite.metrics.Metric"),)
