import torch
import torch.distributed as dist

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]
MAX_DIMS = 8


def pack_header(t):
    head = torch.zeros(2 + MAX_DIMS, dtype=torch.long, device="cuda")
    head[0], head[1] = DTYPES.index(t.dtype), t.dim()
    head[2:2 + t.dim()] = torch.tensor(t.shape, device="cuda")
    return head


def share_tensor(t, src, group):
    own = dist.get_rank() == src
    head = pack_header(t) if own else torch.zeros(2 + MAX_DIMS, dtype=torch.long, device="cuda")
    dist.broadcast(head, src, group=group)
    if not own:
        code, dims, *sizes = head.tolist()
        t = torch.empty(sizes[:dims], dtype=DTYPES[code], device="cuda")
    t = t.contiguous()
    dist.broadcast(t, src, group=group)
    return t


def share_batch(batch, src, group):
    own = dist.get_rank() == src
    names = [sorted(batch)] if own else [None]
    dist.broadcast_object_list(names, src=src, group=group)
    return {n: share_tensor(batch[n].cuda() if own else None, src, group) for n in names[0]}


def forever(loader):
    while True:
        yield from loader


class TensorParallelFeed:
    """Only the first rank of each tensor-parallel group owns a loader."""

    def __init__(self, loader, group):
        self.group = group
        self.src = dist.get_process_group_ranks(group)[0]
        self.it = forever(loader) if dist.get_rank() == self.src else None

    def next(self):
        batch = next(self.it) if self.it is not None else None
        return share_batch(batch, self.src, self.group)


def train(model, feed, opt, steps):
    for _ in range(steps):
        batch = feed.next()
        loss = model(**batch)
        loss.backward()
        opt.step()
        opt.zero_grad()
