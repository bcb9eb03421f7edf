from collections import OrderedDict

import torch
import torch.distributed as dist


class TieRegistry:
    """Parameters that exist on several pipeline ranks and must stay equal."""

    def __init__(self):
        self._mine = {}
        self._groups = {}

    def tie(self, name, param, ranks):
        self._mine[(name, tuple(sorted(set(ranks))))] = param

    def build_groups(self):
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, sorted(self._mine))
        wanted = sorted({ranks for keys in everyone for _, ranks in keys})
        for ranks in wanted:
            self._groups[ranks] = dist.new_group(list(ranks))

    def ordered(self):
        return OrderedDict(sorted(self._mine.items(), key=lambda kv: kv[0]))

    @torch.no_grad()
    def sync_weights(self):
        for (name, ranks), param in self.ordered().items():
            dist.broadcast(param, src=ranks[0], group=self._groups[ranks])

    def sync_grads(self):
        for (name, ranks), param in self.ordered().items():
            if param.grad is None:
                param.grad = torch.zeros_like(param)
            dist.all_reduce(param.grad, group=self._groups[ranks])


def build_stage(cfg, rank, world):
    ties = TieRegistry()
    layers = torch.nn.ModuleList(cfg.block() for _ in range(cfg.n_layer // world)).cuda()
    stage = torch.nn.ModuleDict({"layers": layers})
    if rank == 0:
        stage["embed"] = torch.nn.Embedding(cfg.vocab, cfg.dim).cuda()
        ties.tie("word", stage["embed"].weight, [0, world - 1])
    if rank == world - 1 and world > 1:
        stage["head"] = torch.nn.Linear(cfg.dim, cfg.vocab, bias=False).cuda()
        ties.tie("word", stage["head"].weight, [0, world - 1])
    for i, layer in enumerate(layers):
        if hasattr(layer, "shared_bias"):
            ties.tie(f"bias{i}", layer.shared_bias, range(world))
    ties.build_groups()
    ties.sync_weights()
    return stage, ties
