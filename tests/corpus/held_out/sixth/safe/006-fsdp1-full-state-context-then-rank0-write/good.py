import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel as FSDP,
    StateDictType,
)

WEIGHTS = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
MOMENTS = FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=True)


def save_full(model: FSDP, optimizer, cfg, epoch: int, rank: int):
    t0 = time.perf_counter()
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, WEIGHTS, MOMENTS):
        weights = model.state_dict()
        moments = FSDP.optim_state_dict(model, optimizer) if cfg.save_optimizer else None
    if rank == 0:
        folder = Path(cfg.output) / cfg.run_name
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(weights, folder / f"model-{epoch}.pt")
        if moments is not None:
            torch.save(moments, folder / f"optim-{epoch}.pt")
        print(f"wrote epoch {epoch} in {time.perf_counter() - t0:.1f}s")
    dist.barrier()


def fit(model, loader, optimizer, cfg, evaluate):
    rank = dist.get_rank()
    best = float("inf")
    for epoch in range(cfg.epochs):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            loss = model(**{k: v.cuda() for k, v in batch.items()}).loss
            loss.backward()
            model.clip_grad_norm_(cfg.max_norm)
            optimizer.step()
            optimizer.zero_grad()
        val = evaluate(model)
        dist.all_reduce(val, op=dist.ReduceOp.AVG)
        if val.item() < best:
            best = val.item()
            save_full(model, optimizer, cfg, epoch, rank)
        if rank == 0:
            print(f"epoch {epoch}: val {val.item():.4f} best {best:.4f}")
