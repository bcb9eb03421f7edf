import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

from vlm.data import mixed_loader
from vlm.modules import DecoderLayer, VisionTower


class VisionLanguageModel(nn.Module):
    def __init__(self, vocab=151_936, dim=2048, depth=24, image_token=151_655):
        super().__init__()
        self.image_token = image_token
        self.embed = nn.Embedding(vocab, dim)
        self.vision = VisionTower(out_dim=dim)
        self.layers = nn.ModuleList(DecoderLayer(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, pixels=None):
        x = self.embed(ids)
        if pixels is not None:
            feats = self.vision(pixels)
            slots = (ids == self.image_token).unsqueeze(-1).expand_as(x)
            x = x.masked_scatter(slots, feats.to(x.dtype))
        else:
            blank = torch.zeros(1, 3, 448, 448, device=ids.device)
            x = x + self.vision(blank).sum().to(x.dtype) * 0.0
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def shard(model):
    fully_shard(model.vision)
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def main(steps: int = 20_000):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    model = shard(VisionLanguageModel().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    batches = iter(mixed_loader(dist.get_rank(), dist.get_world_size(), image_ratio=0.3))
    for step in range(steps):
        batch = next(batches)
        ids = batch["ids"].to(device)
        pixels = batch["pixels"].to(device) if batch["pixels"] is not None else None
        logits = model(ids, pixels)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0 and dist.get_rank() == 0:
            print(f"{step} {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
