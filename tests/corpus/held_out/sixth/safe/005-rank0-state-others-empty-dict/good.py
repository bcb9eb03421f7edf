import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def read_full(path, with_optim):
    blob = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    return blob["model"], (blob.get("optim", {}) if with_optim else {})


def build_sharded(make_model, path, lr, with_optim=False):
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("shard",))
    with torch.device("meta"):
        model = make_model()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device="cuda")

    weights, moments = {}, {}
    if dist.get_rank() == 0:
        weights, moments = read_full(path, with_optim)

    opts = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, cpu_offload=False)
    set_model_state_dict(model, weights, options=opts)
    optim = torch.optim.AdamW(model.parameters(), lr=lr)
    if with_optim:
        set_optimizer_state_dict(model, optim, moments, options=opts)
    del weights, moments
    for module in model.modules():
        if hasattr(module, "rebuild_rope"):
            module.rebuild_rope()
    return model, optim
