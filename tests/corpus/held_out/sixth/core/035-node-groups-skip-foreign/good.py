import os
from typing import List, Optional

import torch
import torch.distributed as dist
from torch import nn


class Topology:
    """Splits the world in replicas of `per_node` ranks plus one cross-node group for each local index."""

    def __init__(self, per_node: int):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.per_node = per_node
        nodes = self.world // per_node
        self.intra = self._pick([list(range(n * per_node, (n + 1) * per_node)) for n in range(nodes)])
        self.inter = self._pick([list(range(i, self.world, per_node)) for i in range(per_node)])

    def _pick(self, layout: List[List[int]]) -> Optional[dist.ProcessGroup]:
        mine = None
        for ranks in layout:
            group = dist.new_group(ranks)
            if self.rank in ranks:
                mine = group
        return mine


class HierarchicalAverager:
    """Reduce inside the node, then between nodes every `period` steps."""

    def __init__(self, model: nn.Module, topo: Topology, period: int = 8):
        self.model, self.topo, self.period = model, topo, period

    @torch.no_grad()
    def gradients(self):
        for p in self.model.parameters():
            dist.all_reduce(p.grad, group=self.topo.intra)
            p.grad.div_(self.topo.per_node)

    @torch.no_grad()
    def weights(self, step: int):
        if step % self.period:
            return
        nodes = self.topo.world // self.topo.per_node
        for p in self.model.parameters():
            dist.all_reduce(p.data, group=self.topo.inter)
            p.data.div_(nodes)


def main(make_loader, steps=20_000):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    topo = Topology(int(os.environ["LOCAL_WORLD_SIZE"]))
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv1d(80, 512, 5, padding=2), nn.ReLU(), nn.Conv1d(512, 80, 5, padding=2)).cuda()
    average = HierarchicalAverager(model, topo)
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(make_loader(topo.rank, topo.world))
    for step in range(1, steps + 1):
        mel = next(batches).cuda()
        loss = (model(mel) - mel).abs().mean()
        optim.zero_grad()
        loss.backward()
        average.gradients()
        optim.step()
        average.weights(step)
    dist.destroy_process_group()
