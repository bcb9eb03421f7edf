import os

import deepspeed
import torch
import torch.distributed as dist
from safetensors import safe_open


def load_into_zero3(engine, folder):
    """Fill partitioned parameters from one safetensors file that rank 0 reads."""
    rank = dist.get_rank()
    reader = None
    if rank == 0:
        reader = safe_open(os.path.join(folder, "model.safetensors"), framework="pt")
    loaded = 0
    for name, param in engine.module.named_parameters():
        with deepspeed.zero.GatheredParameters([param], modifier_rank=0):
            if rank == 0:
                tensor = reader.get_tensor(name)
                if tensor.shape != param.shape:
                    raise ValueError(f"{name}: file has {tuple(tensor.shape)}, model {tuple(param.shape)}")
                param.data.copy_(tensor)
                loaded += 1
    if rank == 0:
        print(f"loaded {loaded} tensors from {folder}")
    dist.barrier()


def grow_embedding(engine, tokenizer):
    emb = engine.module.get_input_embeddings().weight
    fresh = len(tokenizer) - tokenizer.vocab_size
    if fresh <= 0:
        return
    with deepspeed.zero.GatheredParameters([emb], modifier_rank=0):
        if dist.get_rank() == 0:
            mean = emb.data[:-fresh].mean(0, keepdim=True)
            emb.data[-fresh:] = mean
            torch.nn.init.normal_(emb.data[-fresh:], mean=float(mean.mean()), std=0.02)


def build(args, model, tokenizer, ds_config):
    engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model, config=ds_config,
                                                   model_parameters=model.parameters())
    if args.init_from:
        load_into_zero3(engine, args.init_from)
    grow_embedding(engine, tokenizer)
    return engine, optimizer
