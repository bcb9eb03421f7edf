import torch
import torch.distributed as dist
from torch import nn

TRACKER = {}
TRACKED = ("load_balance",)


def record(name, value, layer, n_layers):
    slots = TRACKER.setdefault(name, torch.zeros(n_layers, device=value.device))
    slots[layer] += value.detach()


class Expert(nn.Module):
    def __init__(self, cfg, index):
        super().__init__()
        self.cfg, self.index = cfg, index
        self.router = nn.Linear(cfg.dim, cfg.experts, bias=False)
        self.mlp = cfg.make_mlp()

    def forward(self, x):
        probs = self.router(x).softmax(-1)
        record("load_balance", probs.mean((0, 1)).pow(2).sum(), self.index, self.cfg.layers)
        return x + self.mlp(x, probs)


def build_stage(cfg, first, last):
    return nn.Sequential(
        *(Expert(cfg, i) if cfg.is_moe[i] else cfg.make_dense() for i in range(first, last))
    )


def log_aux(cfg, step, pp_group, writer):
    for name in TRACKED:
        slots = TRACKER.get(name, torch.zeros(cfg.layers, device="cuda"))
        dist.all_reduce(slots, group=pp_group)
        if writer is not None:
            writer.add_scalar(name, slots.mean().item(), step)
    TRACKER.clear()
