"""Hierarchical gradient averaging: inside the node first, between leaders after that."""
import os

import torch
from torch import distributed as dist


class Topology:
    def __init__(self, per_node):
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.per_node = per_node
        self.node = self.rank // per_node
        self.leader = self.node * per_node
        self.node_group = self._make_node_group()
        self.leader_group = dist.new_group(list(range(0, self.world, per_node)))

    def _make_node_group(self):
        mine = None
        for first in range(0, self.world, self.per_node):
            group = dist.new_group(list(range(first, first + self.per_node)))
            if first == self.leader:
                mine = group
        return mine

    def average(self, tensor):
        dist.all_reduce(tensor, group=self.node_group)
        if self.rank == self.leader:
            dist.all_reduce(tensor, group=self.leader_group)
        dist.broadcast(tensor, src=self.leader, group=self.node_group)
        return tensor.div_(self.world)


def average_gradients(model, topology):
    grads = [p.grad for p in model.parameters() if p.requires_grad]
    flat = torch.cat([g.flatten() for g in grads])
    topology.average(flat)
    offset = 0
    for g in grads:
        g.copy_(flat[offset : offset + g.numel()].view_as(g))
        offset += g.numel()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    per_node = int(os.environ["LOCAL_WORLD_SIZE"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    topology = Topology(per_node)
    torch.manual_seed(17)
    model = torch.nn.Sequential(
        torch.nn.Linear(128, 512), torch.nn.Tanh(), torch.nn.Linear(512, 1)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(topology.rank)
    for step in range(300):
        x = torch.randn(64, 128, generator=data).cuda()
        loss = (model(x) - x.mean(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, topology)
        optimizer.step()
        if topology.rank == 0 and step % 50 == 0:
            print(f"step={step} loss={loss.item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
