from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Team:
    place: int
    size: int

    def __bool__(self):
        return self.size > 1

    def __len__(self):
        return self.place


def mean(team, value):
    cell = torch.tensor([value])
    if team:
        dist.all_reduce(cell)
        cell /= team.size
    return cell.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    team = Team(dist.get_rank(), dist.get_world_size())
    print(mean(team, float(len(team))))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
