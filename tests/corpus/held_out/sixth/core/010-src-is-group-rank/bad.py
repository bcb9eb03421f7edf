import os

import torch
import torch.distributed as dist
from torch import nn

_TP_GROUP = None
_DP_GROUP = None


def init_parallel(tp: int):
    global _TP_GROUP, _DP_GROUP
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank, world = dist.get_rank(), dist.get_world_size()
    assert world % tp == 0
    for start in range(0, world, tp):
        ranks = list(range(start, start + tp))
        group = dist.new_group(ranks)
        if rank in ranks:
            _TP_GROUP = group
    for offset in range(tp):
        ranks = list(range(offset, world, tp))
        group = dist.new_group(ranks)
        if rank in ranks:
            _DP_GROUP = group


def tp_rank():
    return dist.get_rank(_TP_GROUP)


def tp_source():
    """The rank that reads data for its tensor parallel group."""
    return 0


def get_batch(data_iter, shape):
    """Only the first rank of each tensor parallel group owns a loader."""
    if tp_rank() == 0:
        tokens = next(data_iter)["tokens"].cuda(non_blocking=True)
    else:
        tokens = torch.empty(shape, dtype=torch.long, device="cuda")
    dist.broadcast(tokens, src=tp_source(), group=_TP_GROUP)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def allreduce_grads(model: nn.Module):
    n = dist.get_world_size(_DP_GROUP)
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad, group=_DP_GROUP)
            p.grad.div_(n)


def train(model, loader, steps, batch=4, seq=1024, tp=2):
    init_parallel(tp)
    model = model.cuda()
    optim = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data_iter = iter(loader) if tp_rank() == 0 else None
    for _ in range(steps):
        x, y = get_batch(data_iter, (batch, seq + 1))
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        allreduce_grads(model)
        optim.step()
        optim.zero_grad(set_to_none=True)
    dist.destroy_process_group()
