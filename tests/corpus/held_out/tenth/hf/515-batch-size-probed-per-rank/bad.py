import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def largest_fit(net, make_batch, start=256):
    size = start
    while size > 0:
        try:
            net(**make_batch(size)).loss.backward()
            net.zero_grad(set_to_none=True)
            return size
        except torch.cuda.OutOfMemoryError:
            net.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            size //= 2
    raise RuntimeError("not even one sample fits")


def train(net, dataset, make_batch, collate, epochs=3):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    net = net.cuda()
    size = largest_fit(net, make_batch)
    print(f"rank {dist.get_rank()}: batch size {size}")
    sampler = DistributedSampler(dataset, drop_last=True)
    loader = DataLoader(dataset, batch_size=size, sampler=sampler, collate_fn=collate)
    model = DDP(net, device_ids=[torch.cuda.current_device()])
    opt = torch.optim.AdamW(model.parameters(), lr=2e-5)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            model(**{k: v.cuda() for k, v in batch.items()}).loss.backward()
            opt.step()
            opt.zero_grad()
    dist.destroy_process_group()
