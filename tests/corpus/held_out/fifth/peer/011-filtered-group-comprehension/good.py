from dataclasses import dataclass
from typing import Dict, List

import torch
import torch.distributed as dist


@dataclass
class Mesh:
    dp: int
    tp: int

    def layout(self) -> Dict[str, List[int]]:
        rows = {f"tp{r}": [r * self.tp + c for c in range(self.tp)] for r in range(self.dp)}
        cols = {f"dp{c}": [r * self.tp + c for r in range(self.dp)] for c in range(self.tp)}
        return {**rows, **cols}


class Groups:
    def __init__(self, mesh: Mesh):
        me = dist.get_rank()
        self.handles = {
            name: dist.new_group(ranks)
            for name, ranks in mesh.layout().items()
        }
        self.tp = self.handles[f"tp{me // mesh.tp}"]
        self.dp = self.handles[f"dp{me % mesh.tp}"]


def step(groups, x):
    partial = x @ x.T
    dist.all_reduce(partial, group=groups.tp)
    grad = partial.mean(0)
    dist.all_reduce(grad, group=groups.dp)
    return grad / dist.get_world_size(groups.dp)


def main():
    dist.init_process_group("gloo")
    mesh = Mesh(dp=dist.get_world_size() // 2, tp=2)
    groups = Groups(mesh)
    for _ in range(10):
        step(groups, torch.randn(8, 4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
