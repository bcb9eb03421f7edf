import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


class VisionTower(nn.Module):
    def __init__(self, dim, patch=14):
        super().__init__()
        self.embed = nn.Conv2d(3, dim, patch, patch)
        self.block = nn.TransformerEncoderLayer(dim, 8, batch_first=True)

    def forward(self, px):
        return self.block(self.embed(px).flatten(2).transpose(1, 2))


class TinyVLM(nn.Module):
    IMAGE_TOKEN = 7

    def __init__(self, vocab=32000, dim=512):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.visual = VisionTower(dim)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(dim, 8, batch_first=True) for _ in range(6)])
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids, pixel_values=None):
        x = self.tok(input_ids)
        if pixel_values is not None:
            feats = self.visual(pixel_values).flatten(0, 1)
            where = (input_ids == self.IMAGE_TOKEN).unsqueeze(-1).expand_as(x)
            x = x.masked_scatter(where, feats.to(x.dtype))
        for blk in self.blocks:
            x = blk(x)
        return self.head(x)


def shard(model):
    fully_shard(model.visual)
    for blk in model.blocks:
        fully_shard(blk)
    fully_shard(model)
    return model


def train(loader, steps):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = shard(TinyVLM().cuda())
    optim = torch.optim.AdamW(model.parameters(), lr=1e-5)
    it = iter(loader)
    for step in range(steps):
        batch = next(it)
        ids = batch["input_ids"].cuda()
        px = batch["pixel_values"].cuda() if batch.get("pixel_values") is not None else None
        logits = model(ids, px)
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optim.step()
        optim.zero_grad()
        if step % 20 == 0 and dist.get_rank() == 0:
            print(step, loss.item())
    dist.destroy_process_group()
