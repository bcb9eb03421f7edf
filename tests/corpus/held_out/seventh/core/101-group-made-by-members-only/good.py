from datetime import timedelta

import torch
import torch.distributed as dist

# run with 4 processes
TOWERS = {"audio": [0, 1], "text": [2, 3], "fusion": [0, 2]}


class Tower:
    def __init__(self, name, ranks, group):
        self.name, self.ranks, self.group = name, ranks, group
        self.proj = torch.nn.Linear(8, 8)

    def step(self):
        self.proj.zero_grad()
        self.proj(torch.randn(4, 8)).pow(2).mean().backward()
        for p in self.proj.parameters():
            dist.all_reduce(p.grad, group=self.group)
            p.data -= 0.1 * p.grad / len(self.ranks)


def build_towers(rank):
    mine = []
    for name, ranks in TOWERS.items():
        group = dist.new_group(ranks)  # every process makes every group
        if rank in ranks:
            mine.append(Tower(name, ranks, group))
    return mine


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    towers = build_towers(dist.get_rank())
    for _ in range(5):
        for tower in towers:
            tower.step()
    print(dist.get_rank(), [tower.name for tower in towers])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
