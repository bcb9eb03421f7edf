"""Three roles, one exchange of parameters and statistics."""
import torch
from torch import distributed as dist


def role_of(rank, size):
    if rank == 0:
        return "source"
    return "sink" if rank == size - 1 else "relay"


def exchange(role, params, stats):
    match role:
        case "source":
            params.fill_(3.0)
            dist.broadcast(params, 0)
            dist.reduce(stats, 0)
        case "sink":
            stats *= 2
            dist.broadcast(params, 0)
            dist.reduce(stats, 0)
        case _:
            dist.broadcast(params, 0)
            dist.reduce(stats, 0)


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    params, stats = torch.zeros(8), torch.ones(8)
    exchange(role_of(rank, size), params, stats)
    if rank == 0:
        print(params, stats)
    dist.destroy_process_group()


main()
