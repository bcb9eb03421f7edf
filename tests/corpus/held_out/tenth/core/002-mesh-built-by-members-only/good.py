"""Two towers on disjoint ranks: one process for images, two for text."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

LAYOUT = {"vision": [0], "text": [1, 2]}


class Tower:
    def __init__(self, name, mesh):
        self.name, self.group = name, mesh.get_group()
        self.weight = torch.zeros(12)

    def step(self):
        grad = torch.randn(12)
        dist.all_reduce(grad, group=self.group)
        self.weight -= 0.05 * grad


def materialize(layout, rank):
    tower = None
    for name, members in layout.items():
        mesh = DeviceMesh("cpu", members)  # all ranks build all meshes, in one order
        if rank in members:
            tower = Tower(name, mesh)
    return tower


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    if dist.get_world_size() != 3:
        raise SystemExit("this layout needs three processes")
    tower = materialize(LAYOUT, dist.get_rank())
    for _ in range(10):
        tower.step()
    dist.barrier()
    print(tower.name, tower.weight.norm().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
