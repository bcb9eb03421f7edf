import torch
import torch.distributed as dist


def halve(value, lo, hi, rank):
    """Sum over ever smaller halves of [lo, hi) and keep each partial sum."""
    if hi - lo < 2:
        return []
    group = dist.new_group(list(range(lo, hi)))
    part = value.clone()
    dist.all_reduce(part, group=group)
    mid = (lo + hi) // 2
    if rank < mid:
        below = halve(value, lo, mid, rank)
    else:
        below = halve(value, mid, hi, rank)
    return [part.item(), *below]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print(rank, halve(torch.tensor(float(rank)), 0, dist.get_world_size(), rank))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
