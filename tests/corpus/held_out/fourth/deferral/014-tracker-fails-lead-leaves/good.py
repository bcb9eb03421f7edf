import json
import urllib.request

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def any_rank(flag, device):
    t = torch.tensor([int(flag)], device=device)
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return bool(t)


def send_scalars(address, step, **scalars):
    body = json.dumps({"step": step, **scalars}).encode()
    with urllib.request.urlopen(address, data=body, timeout=10) as answer:
        answer.read()


def fit(model, loader, optimizer, device, is_main, address):
    deferred = None
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if is_main and step % 20 == 0:
            try:
                send_scalars(address, step, loss=loss.item())
            except Exception as e:
                deferred = e
        if any_rank(deferred is not None, device):
            break
    return deferred


def main(dataset, num_classes, address):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    sampler = torch.utils.data.DistributedSampler(dataset, drop_last=True)
    loader = torch.utils.data.DataLoader(dataset, batch_size=32, sampler=sampler, drop_last=True)
    model = DDP(torch.nn.Linear(784, num_classes).to(device), device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters())
    error = fit(model, loader, optimizer, device, rank == 0, address)
    dist.destroy_process_group()
    if error is not None:
        raise error
