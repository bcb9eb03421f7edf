import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@torch.no_grad()
def cat_gather(t):
    parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, t.contiguous())
    return torch.cat(parts)


class MomentumContrast(nn.Module):
    def __init__(self, make, dim=128, slots=65536, m=0.999, temp=0.2):
        super().__init__()
        self.q, self.k = make(dim), make(dim)
        self.slots, self.m, self.temp = slots, m, temp
        for a, b in zip(self.q.parameters(), self.k.parameters()):
            b.data.copy_(a.data)
            b.requires_grad_(False)
        self.register_buffer("bank", F.normalize(torch.randn(dim, slots), dim=0))
        self.register_buffer("cursor", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def mix(self, x):
        local = x.size(0)
        pooled = cat_gather(x)
        order = torch.randperm(pooled.size(0), device=x.device)
        dist.broadcast(order, src=0)
        back = order.argsort()
        rank = dist.get_rank()
        return pooled[order.view(-1, local)[rank]], back

    @torch.no_grad()
    def unmix(self, feats, back):
        local = feats.size(0)
        return cat_gather(feats)[back.view(-1, local)[dist.get_rank()]]

    @torch.no_grad()
    def enqueue(self, keys):
        keys = cat_gather(keys)
        at = int(self.cursor)
        n = keys.size(0)
        if at + n <= self.slots:
            self.bank[:, at:at + n] = keys.T
        else:
            head = self.slots - at
            self.bank[:, at:] = keys[:head].T
            self.bank[:, :n - head] = keys[head:].T
        self.cursor[0] = (at + n) % self.slots

    def forward(self, a, b):
        q = F.normalize(self.q(a), dim=1)
        with torch.no_grad():
            for pq, pk in zip(self.q.parameters(), self.k.parameters()):
                pk.data.mul_(self.m).add_(pq.data, alpha=1 - self.m)
            mixed, back = self.mix(b)
            k = self.unmix(F.normalize(self.k(mixed), dim=1), back)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.bank.clone()
        loss = F.cross_entropy(torch.cat([pos, neg], 1) / self.temp,
                               torch.zeros(len(q), dtype=torch.long, device=q.device))
        self.enqueue(k)
        return loss
