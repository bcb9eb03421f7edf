"""Hierarchical groups by halving; a maximum on every level."""
import torch
import torch.distributed as dist


def halve(members, rank, chain):
    """Groups that contain the rank, from large to small."""
    if len(members) < 2:
        return chain
    middle = len(members) // 2
    left, right = members[:middle], members[middle:]
    for half in (left, right):
        group = dist.new_group(half)
        if rank in half:
            chain.append(group)
    for half in (left, right):
        halve(half, rank, chain)
    return chain


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    levels = halve(list(range(size)), rank, [])
    for depth, group in enumerate(levels):
        value = torch.tensor([float(rank)])
        dist.all_reduce(value, op=dist.ReduceOp.MAX, group=group)
        print(rank, depth, value.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
