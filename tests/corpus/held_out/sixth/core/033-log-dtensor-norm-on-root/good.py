import logging
import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


@dataclass
class OptConf:
    lr: float = 1e-4
    clip: float = 1.0
    log_every: int = 10
    steps: int = 5000


class DiTBlock(nn.Module):
    def __init__(self, dim, heads=8):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))

    def forward(self, x):
        x = x + self.attn(x, x, x, need_weights=False)[0]
        return x + self.mlp(x)


class MetricLog:
    def __init__(self):
        self.t0 = time.time()

    def write(self, step, loss, grad_norm):
        norm = grad_norm.item()
        logging.info("step %d loss %.4f grad_norm %.3f (%.1fs)", step, loss.item(), norm, time.time() - self.t0)


def build(dim=768, depth=12):
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("dp",))
    net = nn.Sequential(*[DiTBlock(dim) for _ in range(depth)]).cuda()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for blk in net:
        fully_shard(blk, mesh=mesh, mp_policy=policy)
    return fully_shard(net, mesh=mesh, mp_policy=policy)


def main(conf=OptConf()):
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = build()
    optim = torch.optim.AdamW(net.parameters(), lr=conf.lr)
    log = MetricLog()
    for step in range(conf.steps):
        x = torch.randn(4, 256, 768, device="cuda")
        loss = (net(x + torch.randn_like(x)).float() - x).pow(2).mean()
        loss.backward()
        grad_norm = nn.utils.clip_grad_norm_(net.parameters(), conf.clip)
        grad_norm = grad_norm.full_tensor()
        optim.step()
        optim.zero_grad()
        if step % conf.log_every == 0 and dist.get_rank() == 0:
            log.write(step, loss.detach(), grad_norm)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
