"""Train with FSDP2 and publish consolidated weights for the rollout server."""
import logging
import os
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

log = logging.getLogger("publisher")


@dataclass
class Config:
    steps: int = 200
    publish_every: int = 50
    dim: int = 1024
    out: str = "/mnt/shared/weights"


class WeightPublisher:
    def __init__(self, out_dir):
        self.root = Path(out_dir)
        self.is_writer = dist.get_rank() == 0
        if self.is_writer:
            self.root.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def _materialize(value):
        if isinstance(value, DTensor):
            value = value.full_tensor()
        return value.detach().cpu()

    def publish(self, model, version):
        sharded = model.state_dict()
        if self.is_writer:
            payload = {k: self._materialize(v) for k, v in sharded.items()}
            torch.save(payload, self.root / f"v{version}.pt")
            log.info("published version %d (%d tensors)", version, len(payload))
        dist.barrier()


def build_model(dim):
    blocks = nn.Sequential(*[nn.Sequential(nn.Linear(dim, dim), nn.GELU()) for _ in range(8)])
    for block in blocks:
        fully_shard(block)
    return fully_shard(blocks)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    logging.basicConfig(level=logging.INFO if dist.get_rank() == 0 else logging.WARNING)
    cfg = Config()
    model = build_model(cfg.dim).cuda()
    optim = torch.optim.AdamW(model.parameters(), lr=1e-4)
    publisher = WeightPublisher(cfg.out)
    for step in range(1, cfg.steps + 1):
        x = torch.randn(8, cfg.dim, device="cuda")
        loss = model(x).pow(2).mean()
        loss.backward()
        optim.step()
        optim.zero_grad()
        if step % cfg.publish_every == 0:
            publisher.publish(model, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
