"""Ring attention over sequence shards (forward only), for long-context scoring."""
import math
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn


class Ring:
    def __init__(self, group=None):
        self.group = group
        self.rank, self.world = dist.get_rank(group), dist.get_world_size(group)
        peers = dist.get_process_group_ranks(group) if group is not None else list(range(self.world))
        self.next = peers[(self.rank + 1) % self.world]
        self.prev = peers[(self.rank - 1) % self.world]

    def start(self, tensors):
        """Posts the exchange of all tensors with one batch; returns (works, buffers)."""
        buffers = [torch.empty_like(t) for t in tensors]
        ops = []
        for t, b in zip(tensors, buffers):
            ops.append(dist.P2POp(dist.isend, t.contiguous(), self.next, self.group))
            ops.append(dist.P2POp(dist.irecv, b, self.prev, self.group))
        return dist.batch_isend_irecv(ops), buffers


def block_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    lse = scores.logsumexp(-1, keepdim=True)
    return (scores - lse).exp() @ v, lse


def merge(out, lse, new_out, new_lse):
    if out is None:
        return new_out, new_lse
    top = torch.maximum(lse, new_lse)
    a, b = (lse - top).exp(), (new_lse - top).exp()
    return (out * a + new_out * b) / (a + b), top + (a + b).log()


def ring_attention(ring, q, k, v, causal=True):
    out = lse = None
    t = q.size(-2)
    diagonal = torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1) if causal else None
    for hop in range(ring.world):
        source = (ring.rank - hop) % ring.world
        last = hop == ring.world - 1
        works, incoming = ([], None) if last else ring.start([k, v])
        if not causal or source < ring.rank:
            out, lse = merge(out, lse, *block_attention(q, k, v))
        elif source == ring.rank:
            out, lse = merge(out, lse, *block_attention(q, k, v, diagonal))
        # later blocks are hidden by causality: nothing to compute, but they still pass through
        for work in works:
            work.wait()
        if not last:
            k, v = incoming
    return out


class Layer(nn.Module):
    def __init__(self, d, heads, ring):
        super().__init__()
        self.heads, self.ring = heads, ring
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = ring_attention(self.ring, q, k.contiguous(), v.contiguous())
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class Scorer(nn.Module):
    def __init__(self, vocab, d, depth, heads, ring):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(Layer(d, heads, ring) for _ in range(depth))
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def split_document(ids, ring):
    """Shards of one length; the target of the last token of a shard is in the next one."""
    usable = (ids.numel() - 1) // ring.world * ring.world
    per = usable // ring.world
    low = ring.rank * per
    return ids[low:low + per][None], ids[low + 1:low + per + 1][None]


@torch.no_grad()
def perplexity(model, ids, ring, device):
    x, y = (s.to(device) for s in split_document(ids, ring))
    nll = nn.functional.cross_entropy(model(x).flatten(0, 1).float(), y.flatten(), reduction="sum")
    packed = torch.stack([nll, torch.tensor(float(y.numel()), device=device)])
    dist.all_reduce(packed, group=ring.group)
    return math.exp((packed[0] / packed[1]).item())


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10), device_id=device)
    torch.manual_seed(0)
    ring = Ring()
    model = Scorer(1000, 256, 4, 8, ring).to(device).eval()
    weights = os.environ.get("WEIGHTS")
    if weights:
        model.load_state_dict(torch.load(weights, map_location=device))
    gen = torch.Generator().manual_seed(9)  # every rank draws the same documents
    for index in range(8):
        ids = torch.randint(0, 1000, (4096 + 513 * index,), generator=gen)
        value = perplexity(model, ids, ring, device)
        if dist.get_rank() == 0:
            print(f"document {index} ({ids.numel()} tokens): perplexity {value:.2f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
