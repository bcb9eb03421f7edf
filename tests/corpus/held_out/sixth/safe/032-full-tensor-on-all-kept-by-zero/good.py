import gc
import json
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor


def gather_on_cpu(model, keep: bool, dtype=None):
    full = {}
    for name, value in model.state_dict().items():
        if isinstance(value, DTensor):
            if value.device.type == "cpu":
                value = value.to("cuda")
            value = value.full_tensor()
        if keep:
            value = value.detach().to("cpu")
            full[name] = value.to(dtype) if dtype is not None and value.is_floating_point() else value
        del value
    gc.collect()
    return full


def shards_of(state, limit=5 * 2 ** 30):
    current, size, out = {}, 0, []
    for name, t in state.items():
        n = t.numel() * t.element_size()
        if current and size + n > limit:
            out.append(current)
            current, size = {}, 0
        current[name] = t
        size += n
    if current:
        out.append(current)
    return out


def export(model, folder, step):
    lead = dist.get_rank() == 0
    state = gather_on_cpu(model, keep=lead, dtype=torch.bfloat16)
    if lead:
        target = Path(folder) / f"export-{step}"
        target.mkdir(parents=True, exist_ok=True)
        parts = shards_of(state)
        index = {}
        for i, part in enumerate(parts):
            name = f"model-{i + 1:05d}-of-{len(parts):05d}.safetensors"
            save_file({k: v.contiguous() for k, v in part.items()}, target / name)
            index.update(dict.fromkeys(part, name))
        (target / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    dist.barrier()
