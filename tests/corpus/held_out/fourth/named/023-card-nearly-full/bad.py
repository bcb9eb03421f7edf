import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class MemoryWatch:
    def __init__(self, device, fraction=0.95):
        total = torch.cuda.get_device_properties(device).total_memory
        self.device, self.limit = device, int(fraction * total)

    def peak(self):
        return torch.cuda.max_memory_allocated(self.device)


def grow_batch(model, make_batch, device, start=8, rounds=50):
    """Double the batch until a device is nearly full; the last size that fits."""
    watch = MemoryWatch(device)
    optimizer = torch.optim.AdamW(model.parameters())
    size = start
    for _ in range(rounds):
        loss = model(make_batch(size, device)).float().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if watch.peak() > watch.limit // 2:
            break
        size *= 2
    return size


def main(net, make_batch):
    dist.init_process_group("nccl")
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    model = DistributedDataParallel(net.to(device), device_ids=[device.index])
    size = grow_batch(model, make_batch, device)
    best = torch.tensor([size], device=device)
    dist.all_reduce(best, op=dist.ReduceOp.MIN)
    if dist.get_rank() == 0:
        print("batch size", best.item())
    dist.destroy_process_group()
