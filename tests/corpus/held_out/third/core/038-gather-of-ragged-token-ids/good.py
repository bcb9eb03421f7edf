from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class MomentumQueue(nn.Module):
    def __init__(self, vocab=100, width=24, size=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.register_buffer("queue", torch.zeros(size, width))
        self.size = size

    def encode(self, ids, mask):
        rows = self.embed(ids) * mask.unsqueeze(-1)
        return F.normalize(rows.sum(1) / mask.sum(1, keepdim=True).clamp(min=1), dim=1)

    def forward(self, ids, valid):
        longest = valid.max().reshape(1)
        dist.all_reduce(longest, op=dist.ReduceOp.MAX)
        ids = ids[:, : int(longest)].contiguous()
        everyone = [torch.empty_like(ids) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, ids)
        ids_all = torch.cat(everyone)
        keys = self.encode(ids_all, (ids_all > 0).float())
        self.queue = torch.cat([keys.detach(), self.queue])[: self.size]
        query = self.encode(ids, (ids > 0).float())
        return F.cross_entropy(query @ keys.T / 0.07, torch.arange(len(query)) + len(query) * dist.get_rank())


def sample(rank, step, batch=4, room=16):
    gen = torch.Generator().manual_seed(1000 * rank + step)
    valid = torch.randint(3, room + 1, (batch,), generator=gen)
    ids = torch.randint(1, 100, (batch, room), generator=gen)
    ids[torch.arange(room).expand(batch, room) >= valid[:, None]] = 0
    return ids, valid


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = MomentumQueue()
    for step in range(10):
        loss = model(*sample(dist.get_rank(), step))
        dist.all_reduce(loss.detach())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
