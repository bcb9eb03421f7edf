import torch
import torch.distributed as dist


def role(rank, size):
    match rank:
        case 0:
            return "first"
        case _ if rank == size - 1:
            return "last"
        case _:
            return "middle"


def prepare(kind, t):
    match kind:
        case "first" | "last":
            t += 1
            return True
        case "middle":
            return False
    raise ValueError(kind)


def step(kind, t):
    if not prepare(kind, t):
        return None
    dist.all_reduce(t)
    return t.item()


def main():
    dist.init_process_group("gloo")
    kind = role(dist.get_rank(), dist.get_world_size())
    print(kind, step(kind, torch.zeros(1)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
