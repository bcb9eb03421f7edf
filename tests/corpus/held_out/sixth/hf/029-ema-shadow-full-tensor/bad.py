import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from weather.data import era5_stream
from weather.model import WXFormer


class EMATracker:
    """Keeps the average of the local shards; the averaging itself needs no communication."""

    def __init__(self, model, decay=0.9999):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, param in model.named_parameters():
            self.shadow[name].lerp_(param.detach(), 1.0 - self.decay)

    def state_dict(self):
        out = {}
        for name, value in self.shadow.items():
            if isinstance(value, DTensor):
                value = value.full_tensor()
            out[name] = value.cpu()
        return out


class Saver:
    def __init__(self, folder):
        self.folder = folder
        self.rank = dist.get_rank()

    def save_ema(self, ema: EMATracker, step: int):
        if self.rank != 0:
            return
        os.makedirs(self.folder, exist_ok=True)
        payload = {"ema": ema.state_dict(), "step": step, "decay": ema.decay}
        torch.save(payload, os.path.join(self.folder, "checkpoint_ema.pt"))


def main(steps=100_000, save_every=2_000):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = WXFormer().cuda()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ema, saver = EMATracker(model), Saver("ckpt/wxformer")
    stream = era5_stream(dist.get_rank(), dist.get_world_size())
    for step in range(1, steps + 1):
        x, y = (t.cuda() for t in next(stream))
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ema.update(model)
        if step % save_every == 0:
            saver.save_ema(ema, step)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
