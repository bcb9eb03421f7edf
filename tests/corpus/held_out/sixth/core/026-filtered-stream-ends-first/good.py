import itertools
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, IterableDataset

logger = logging.getLogger("flux")


class ImageTextStream(IterableDataset):
    def __init__(self, files, rank, world):
        self.files = files[rank::world]

    def __iter__(self):
        for path in self.files:
            try:
                sample = torch.load(path)
            except (EOFError, RuntimeError, OSError):
                logger.warning("skipping unreadable %s", path)
                continue
            if sample["image"].shape[0] != 3:
                continue
            yield sample["image"].float() / 255.0, sample["t5"]


class TinyFlux(nn.Module):
    def __init__(self, dim=256, depth=4):
        super().__init__()
        self.img = nn.Conv2d(3, dim, 16, 16)
        self.txt = nn.Linear(4096, dim)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(dim, 8, batch_first=True) for _ in range(depth)])
        self.out = nn.ConvTranspose2d(dim, 3, 16, 16)

    def forward(self, img, txt):
        z = self.img(img)
        b, c, h, w = z.shape
        seq = torch.cat([self.txt(txt), z.flatten(2).transpose(1, 2)], dim=1)
        for blk in self.blocks:
            seq = blk(seq)
        return self.out(seq[:, -h * w :].transpose(1, 2).reshape(b, c, h, w))


def all_have(flag):
    t = torch.tensor(int(flag), device="cuda")
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return bool(t.item())


def train(files, max_steps, batch_size=8):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = TinyFlux().cuda()
    for blk in model.blocks:
        fully_shard(blk)
    fully_shard(model)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-4)
    stream = ImageTextStream(files, dist.get_rank(), dist.get_world_size())
    batches = iter(DataLoader(stream, batch_size=batch_size, drop_last=True))
    for step in itertools.count(1):
        batch = next(batches, None)
        if not all_have(batch is not None) or step > max_steps:
            logger.info("data exhausted or step limit at step %d", step)
            break
        img, txt = (t.cuda() for t in batch)
        noise = torch.randn_like(img)
        loss = (model(img + noise, txt) - noise).pow(2).mean()
        loss.backward()
        optim.step()
        optim.zero_grad()
    dist.destroy_process_group()
