import torch
import torch.distributed as dist
from torch.nn.functional import pad


def all_gather_rows(rows):
    """Concatenate the rows of all ranks; the number of rows may differ."""
    world = dist.get_world_size()
    mine = torch.tensor([rows.shape[0]])
    sizes = [torch.zeros_like(mine) for _ in range(world)]
    dist.all_gather(sizes, mine)
    counts = [int(s) for s in sizes]
    longest = max(counts)
    if longest == 0:
        return rows
    if min(counts) == longest:
        parts = [torch.empty_like(rows) for _ in range(world)]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)
    padded = pad(rows, (0, 0, 0, longest - rows.shape[0]))
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    return torch.cat([p[:n] for p, n in zip(parts, counts)])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    boxes = torch.full((rank, 4), float(rank))  # rank 0 found nothing
    everything = all_gather_rows(boxes)
    assert len(everything) == world * (world - 1) // 2
    assert len(all_gather_rows(torch.zeros(2, 4))) == 2 * world
    assert len(all_gather_rows(torch.zeros(0, 4))) == 0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
