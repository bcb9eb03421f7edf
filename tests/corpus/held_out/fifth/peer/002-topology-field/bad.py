from dataclasses import dataclass, field

import torch
from torch import distributed as dist


@dataclass
class Topology:
    rank: int
    world: int
    node_size: int = 8
    labels: dict = field(default_factory=dict)

    @property
    def node(self):
        return self.rank // self.node_size

    @property
    def multi_node(self):
        return self.rank // self.node_size > 0

    def tag(self, key, value):
        self.labels[key] = value
        return self


class GradientPool:
    def __init__(self, topo, model):
        self.topo = topo
        self.params = [p for p in model.parameters() if p.requires_grad]

    def flush(self):
        flat = torch.cat([p.grad.reshape(-1) for p in self.params])
        dist.all_reduce(flat)
        flat /= self.topo.world
        if self.topo.multi_node:
            # tree and ring reductions differ in the last bit between nodes
            dist.broadcast(flat, src=0)
        offset = 0
        for p in self.params:
            p.grad.copy_(flat[offset:offset + p.numel()].view_as(p))
            offset += p.numel()


def main():
    dist.init_process_group("gloo")
    topo = Topology(dist.get_rank(), dist.get_world_size()).tag("run", "nightly")
    model = torch.nn.Linear(64, 4)
    pool = GradientPool(topo, model)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        opt.zero_grad()
        model(torch.randn(16, 64)).square().mean().backward()
        pool.flush()
        opt.step()
    print("node", topo.node, "done", topo.labels)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
