"""Momentum contrast with a shared queue and batch shuffling between ranks."""
import copy
import math
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import transforms as T


@torch.no_grad()
def concat_all_gather(t):
    slots = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(slots, t.contiguous())
    return torch.cat(slots)


class MoCo(nn.Module):
    def __init__(self, dim=128, queue=16384, momentum=0.999, temperature=0.07):
        super().__init__()
        self.m, self.t, self.size = momentum, temperature, queue
        self.encoder_q = torchvision.models.resnet18(num_classes=dim)
        self.encoder_k = copy.deepcopy(self.encoder_q).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(dim, queue), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _update_key_encoder(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.mul_(self.m).add_(q, alpha=1 - self.m)

    @torch.no_grad()
    def _shuffle(self, x):
        n = x.shape[0]
        everything = concat_all_gather(x)
        order = torch.randperm(everything.shape[0], device=x.device)
        dist.broadcast(order, src=0)
        restore = order.argsort()
        rank = dist.get_rank()
        return everything[order[rank * n:(rank + 1) * n]], restore

    @torch.no_grad()
    def _unshuffle(self, x, restore):
        n = x.shape[0]
        everything = concat_all_gather(x)
        rank = dist.get_rank()
        return everything[restore[rank * n:(rank + 1) * n]]

    @torch.no_grad()
    def _enqueue(self, keys):
        keys = concat_all_gather(keys)
        n, at = keys.shape[0], int(self.ptr)
        assert self.size % n == 0, "the queue is a multiple of the global batch"
        self.queue[:, at:at + n] = keys.T
        self.ptr[0] = (at + n) % self.size

    def forward(self, view_q, view_k):
        q = F.normalize(self.encoder_q(view_q), dim=1)
        with torch.no_grad():
            self._update_key_encoder()
            mixed, restore = self._shuffle(view_k)
            k = self._unshuffle(F.normalize(self.encoder_k(mixed), dim=1), restore)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.clone().detach()
        logits = torch.cat([pos, neg], 1) / self.t
        self._enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


class Twice:
    def __init__(self):
        self.tf = T.Compose([T.RandomResizedCrop(32, scale=(0.2, 1)), T.ColorJitter(0.4, 0.4, 0.4, 0.1),
                             T.RandomHorizontalFlip(), T.ToTensor()])

    def __call__(self, im):
        return self.tf(im), self.tf(im)


def cosine(optimizer, base, epoch, total):
    for g in optimizer.param_groups:
        g["lr"] = base * 0.5 * (1 + math.cos(math.pi * epoch / total))


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=20))
    rank, world = dist.get_rank(), dist.get_world_size()

    root = os.environ.get("DATA", "/tmp/cifar")
    if local == 0:
        torchvision.datasets.CIFAR10(root, download=True)
    dist.barrier(device_ids=[local])
    data = torchvision.datasets.CIFAR10(root, transform=Twice())
    sampler = DistributedSampler(data)
    global_batch = 512
    assert global_batch % world == 0
    loader = DataLoader(data, global_batch // world, sampler=sampler, drop_last=True, num_workers=4)

    torch.manual_seed(0)
    model = DDP(MoCo().to(device), device_ids=[local], broadcast_buffers=False)
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.module.encoder_q.parameters(), 0.06, momentum=0.9, weight_decay=5e-4)
    epochs = 200
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        cosine(optimizer, 0.06, epoch, epochs)
        total = 0.0
        for (a, b), _ in loader:
            loss = model(a.to(device, non_blocking=True), b.to(device, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if rank == 0:
            print(f"epoch {epoch}: {total / len(loader):.4f}")
            if (epoch + 1) % 20 == 0:
                torch.save(model.module.state_dict(), f"moco-{epoch + 1}.pt")
    dist.barrier(device_ids=[local])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
