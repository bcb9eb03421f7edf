"""Facts on torch outside ``torch.distributed``: modules, tensors, optimizers, data, devices, files, seeds."""

from __future__ import annotations

from .build import DATA, MODULE, PURE, UNIFORM, agreed, local, varying
from .fact import Arg, Fact, TypeFacts

OPTIMIZER = "torch.optim.Optimizer"
SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"
TENSOR = "torch.Tensor"
LOADER = "torch.utils.data.DataLoader"
SAMPLER = "torch.utils.data.distributed.DistributedSampler"

_RANDOM = varying("random", event="draw-torch", unless=Arg(-1, "generator"))
_SEED = Fact(event="seed-torch", result="uniform")
_RECEIVER = Fact(result="receiver")
_MEMORY = varying("data", event="memory")
_SAVED = local("write")
_CLIP = agreed("clip_grad_norm_", when_sharded=True)

FUNCTIONS: dict[str, Fact] = {
    "torch.utils.tensorboard.SummaryWriter": Fact(
        event="tracker-start", returns="torch.utils.tensorboard.SummaryWriter"
    ),
    # not the collectives of the same name
    "torch.gather": PURE,
    "torch.scatter": PURE,
    "torch.scatter_reduce": PURE,
    "torch.broadcast_tensors": PURE,
    "torch.broadcast_to": PURE,
    "torch.nn.parallel.gather": PURE,
    "torch.nn.parallel.scatter": PURE,
    "torch.nn.parallel.replicate": PURE,
    "torch.nn.parallel.comm.gather": PURE,
    "torch.nn.parallel.comm.broadcast": PURE,
    "torch.nn.parallel.comm.scatter": PURE,
    "torch.nn.parallel.comm.reduce_add": PURE,
    "torch.cuda.comm.broadcast": PURE,
    "torch.cuda.comm.gather": PURE,
    "torch.cuda.comm.scatter": PURE,
    "torch.cuda.nccl.all_reduce": PURE,
    "torch.linalg.matrix_rank": PURE,
    "torch.nn.functional.cross_entropy": PURE,
    # random numbers
    "torch.rand": _RANDOM,
    "torch.randn": _RANDOM,
    "torch.randint": _RANDOM,
    "torch.randperm": _RANDOM,
    "torch.rand_like": _RANDOM,
    "torch.randn_like": _RANDOM,
    "torch.randint_like": _RANDOM,
    "torch.normal": _RANDOM,
    "torch.bernoulli": _RANDOM,
    "torch.multinomial": _RANDOM,
    "torch.poisson": _RANDOM,
    "torch.seed": varying("random", event="seed-torch"),
    "torch.random.seed": varying("random", event="seed-torch"),
    "torch.initial_seed": varying("random", event="draw-torch"),
    "torch.get_rng_state": varying("random", event="draw-torch"),
    "torch.manual_seed": _SEED,
    "torch.cuda.manual_seed": _SEED,
    "torch.cuda.manual_seed_all": _SEED,
    "torch.set_rng_state": _SEED,
    "torch.random.fork_rng": Fact(wraps="context"),
    # files
    "torch.save": _SAVED,
    "torch.load": local("read"),
    "torch.jit.save": _SAVED,
    "torch.jit.load": local("read"),
    "torch.onnx.export": _SAVED,
    "torch.export.save": _SAVED,
    "torch.export.load": local("read"),
    "torch._inductor.aoti_compile_and_package": _SAVED,
    "torch._inductor.aoti_load_package": local("read"),
    "torch.hub.load": local("download"),
    "torch.hub.load_state_dict_from_url": local("download"),
    "torch.hub.download_url_to_file": local("download"),
    "torchvision.utils.save_image": _SAVED,
    **dict.fromkeys((f"torchvision.io.write_{what}" for what in ("video", "jpeg", "png", "file")), _SAVED),
    "safetensors.torch.save_file": _SAVED,
    "safetensors.torch.load_file": local("read"),
    "safetensors.torch.save_model": _SAVED,
    "safetensors.torch.load_model": local("read"),
    "safetensors.safe_open": local("read"),
    # devices
    "torch.cuda.set_device": Fact(event="set-device"),
    "torch.accelerator.set_device_index": Fact(event="set-device"),
    "torch.xpu.set_device": Fact(event="set-device"),
    "torch.npu.set_device": Fact(event="set-device"),
    "torch.cuda.device": Fact(wraps="context", event="set-device"),
    "torch.cuda.device_count": Fact(result="uniform", event="device-count"),
    "torch.accelerator.device_count": Fact(result="uniform", event="device-count"),
    "torch.cuda.current_device": varying("rank", event="local-rank", certainty="likely"),
    "torch.cuda.is_available": UNIFORM,
    "torch.cuda.is_bf16_supported": UNIFORM,
    "torch.accelerator.is_available": UNIFORM,
    "torch.accelerator.current_accelerator": UNIFORM,
    "torch.cuda.get_device_properties": UNIFORM,  # the cards of a job are taken to be alike
    "torch.cuda.get_device_capability": UNIFORM,
    "torch.cuda.get_device_name": UNIFORM,
    "torch.cuda.memory_allocated": _MEMORY,
    "torch.cuda.memory_reserved": _MEMORY,
    "torch.cuda.max_memory_allocated": _MEMORY,
    "torch.cuda.max_memory_reserved": _MEMORY,
    "torch.cuda.mem_get_info": _MEMORY,
    "torch.cuda.memory_stats": _MEMORY,
    "torch.cuda.utilization": _MEMORY,
    "torch.cuda.temperature": _MEMORY,
    "torch.cuda.synchronize": Fact(event="device-sync"),
    # modules and gradients
    "torch.nn.utils.clip_grad_norm_": _CLIP,
    "torch.nn.utils.get_total_norm": agreed("get_total_norm", when_sharded=True),
    "torch.nn.utils.clip_grad_value_": PURE,
    "torch.autograd.backward": Fact(event="backward"),
    "torch.autograd.grad": Fact(event="backward"),
    "torch.compile": Fact(result="arg0", wraps="decorator"),
    "torch.jit.script": Fact(result="arg0", wraps="decorator"),
    "torch.no_grad": Fact(wraps="context", event="no-grad"),
    "torch.inference_mode": Fact(wraps="context", event="no-grad"),
    "torch.enable_grad": Fact(wraps="context"),
    "torch.set_grad_enabled": Fact(wraps="context"),
    "torch.autocast": Fact(wraps="context"),
    "torch.amp.autocast": Fact(wraps="context"),
    "torch.cuda.amp.autocast": Fact(wraps="context"),
    "torch.cuda.stream": Fact(wraps="context"),
    "torch.profiler.profile": Fact(wraps="context"),
    "torch.profiler.record_function": Fact(wraps="context"),
    "torch.utils.checkpoint.checkpoint": Fact(wraps="call"),
    "torch.utils.data.distributed.DistributedSampler": varying("data", returns=SAMPLER, event="sampler"),
    # processes
    "torch.multiprocessing.spawn": Fact(wraps="spawn", event="spawn"),
    "torch.multiprocessing.start_processes": Fact(wraps="spawn", event="spawn"),
    "torch.multiprocessing.Process": Fact(wraps="spawn", event="spawn", callee=Arg(1, "target")),
}

TYPES: dict[str, TypeFacts] = {
    TENSOR: TypeFacts(
        methods={
            "backward": Fact(event="backward"),
            "gather": PURE,
            "scatter": PURE,
            "scatter_": PURE,
            "scatter_reduce": PURE,
            "scatter_add_": PURE,
            "item": Fact(event="item"),
            "tolist": Fact(event="item"),
            "normal_": _RANDOM,
            "uniform_": _RANDOM,
            "bernoulli_": _RANDOM,
            "random_": _RANDOM,
        }
    ),
    MODULE: TypeFacts(
        methods={
            "train": _RECEIVER,
            "eval": _RECEIVER,
            "to": _RECEIVER,
            "cuda": _RECEIVER,
            "cpu": _RECEIVER,
            "half": _RECEIVER,
            "float": _RECEIVER,
            "double": _RECEIVER,
            "bfloat16": _RECEIVER,
            "type": _RECEIVER,
            "apply": _RECEIVER,
            "requires_grad_": _RECEIVER,
            "share_memory": _RECEIVER,
            "compile": PURE,
            "parameters": PURE,
            "named_parameters": PURE,
            "children": PURE,
            "modules": PURE,
            "buffers": PURE,
            "state_dict": Fact(event="state-dict"),
            "load_state_dict": PURE,
            "zero_grad": PURE,
            "register_buffer": PURE,
        },
        attributes={"training": UNIFORM},
        call=PURE,
    ),
    OPTIMIZER: TypeFacts(
        methods={
            "step": Fact(event="optimizer-step"),
            "zero_grad": PURE,
            "state_dict": Fact(event="state-dict"),
            "load_state_dict": PURE,
            "add_param_group": PURE,
        }
    ),
    "torch.optim.LBFGS": TypeFacts(
        bases=(OPTIMIZER,),
        methods={"step": Fact(wraps="search", event="optimizer-step", callee=Arg(0, "closure"))},
    ),
    SCHEDULER: TypeFacts(methods={"step": PURE, "get_last_lr": PURE, "state_dict": PURE}),
    "torch.amp.GradScaler": TypeFacts(
        methods={
            "scale": Fact(result="arg0"),
            "step": Fact(event="optimizer-step"),
            "update": PURE,
            "unscale_": PURE,
            "get_scale": varying("data", certainty="possible"),
        }
    ),
    "torch.Generator": TypeFacts(
        methods={
            "manual_seed": Fact(result="receiver", event="seed-generator"),
            "seed": varying("random", event="seed-generator"),
            "initial_seed": PURE,
        }
    ),
    "torch.utils.data.Dataset": TypeFacts(hooks={"__getitem__": ("",), "__len__": ()}),
    "torch.utils.data.IterableDataset": TypeFacts(bases=("torch.utils.data.Dataset",), iterate=DATA),
    "torch.utils.data.Sampler": TypeFacts(iterate=PURE),
    SAMPLER: TypeFacts(
        bases=("torch.utils.data.Sampler",),
        methods={"set_epoch": PURE},
        attributes={"num_samples": UNIFORM, "total_size": UNIFORM},
        iterate=varying("data", event="uniform-count"),
    ),
    LOADER: TypeFacts(iterate=varying("data", event="loader"), attributes={"dataset": PURE, "sampler": PURE}),
    "torch.utils.tensorboard.SummaryWriter": TypeFacts(
        methods={
            "close": local("tracker-end"),
            "flush": local("tracker-log"),
        },
        other=local("tracker-log"),
    ),
    "torch.distributed.checkpoint.stateful.Stateful": TypeFacts(
        hooks={"state_dict": (), "load_state_dict": ("",)}
    ),
}

CLASS_PATTERNS: tuple[tuple[str, str, str], ...] = (
    ("torch.optim.lr_scheduler.", "", SCHEDULER),
    ("torch.optim.", "", OPTIMIZER),
    ("torch.utils.data.", "Sampler", "torch.utils.data.Sampler"),
    ("torch.utils.data.", "Dataset", "torch.utils.data.Dataset"),
    ("torch.nn.Parameter", "", TENSOR),
    ("torch.nn.", "", MODULE),
    ("torchvision.models.", "", MODULE),
)

ALIASES: dict[str, str] = {
    "torch.nn.modules.module.Module": MODULE,
    "torch.nn.modules.Module": MODULE,
    "torch._tensor.Tensor": TENSOR,
    "torch.optim.optimizer.Optimizer": OPTIMIZER,
    "torch.optim.lr_scheduler._LRScheduler": SCHEDULER,
    "torch.utils.data.DistributedSampler": SAMPLER,
    "torch.utils.data.dataloader.DataLoader": LOADER,
    "torch.utils.data.dataset.Dataset": "torch.utils.data.Dataset",
    "torch.utils.data.dataset.IterableDataset": "torch.utils.data.IterableDataset",
    "torch.utils.data.sampler.Sampler": "torch.utils.data.Sampler",
    "torchdata.stateful_dataloader.StatefulDataLoader": LOADER,
    "torch.cuda.amp.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler": "torch.amp.GradScaler",
    "torch.utils.tensorboard.writer.SummaryWriter": "torch.utils.tensorboard.SummaryWriter",
    "tensorboardX.SummaryWriter": "torch.utils.tensorboard.SummaryWriter",
    "tensorboardX.writer.SummaryWriter": "torch.utils.tensorboard.SummaryWriter",
    "torch.nn.utils.clip_grad.clip_grad_norm_": "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_norm": "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad.get_total_norm": "torch.nn.utils.get_total_norm",
    "torch.random.manual_seed": "torch.manual_seed",
    "torch.random.get_rng_state": "torch.get_rng_state",
    "torch.random.set_rng_state": "torch.set_rng_state",
    "torch.cuda.random.manual_seed_all": "torch.cuda.manual_seed_all",
    "torch.serialization.save": "torch.save",
    "torch.serialization.load": "torch.load",
    "torch._C.Generator": "torch.Generator",
    "torch.multiprocessing.spawn.spawn": "torch.multiprocessing.spawn",
    "torch.autograd.grad_mode.no_grad": "torch.no_grad",
}
