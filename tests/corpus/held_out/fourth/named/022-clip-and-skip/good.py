import math

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors as flatten
from torch._utils import _unflatten_dense_tensors as unflatten


def broadcast_parameters(model):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)


def sync_gradients(model):
    grads = [p.grad for p in model.parameters() if p.requires_grad]
    flat = flatten(grads)
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for grad, mean in zip(grads, unflatten(flat, grads)):
        grad.copy_(mean)


def update(model, optimizer, x, y, max_norm=1.0):
    optimizer.zero_grad()
    loss = torch.nn.functional.smooth_l1_loss(model(x), y)
    loss.backward()
    sync_gradients(model)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if not math.isfinite(norm):
        return None
    optimizer.step()
    return loss.item()


def main(model, batches):
    dist.init_process_group("gloo")
    broadcast_parameters(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    skipped = 0
    for x, y in batches:
        if update(model, optimizer, x, y) is None:
            skipped += 1
    print(f"rank {dist.get_rank()}: {skipped} steps skipped")
    dist.destroy_process_group()
