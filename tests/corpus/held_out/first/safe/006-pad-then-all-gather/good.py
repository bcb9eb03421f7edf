import torch
import torch.distributed as dist


def gather_ragged(rows):
    """All ranks get the rows of all ranks, in rank order."""
    world = dist.get_world_size()
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(world)]
    dist.all_gather(sizes, torch.tensor([rows.shape[0]]))
    longest = int(max(s.item() for s in sizes))
    if rows.shape[0] < longest:
        extra = rows.new_zeros(longest - rows.shape[0], *rows.shape[1:])
        rows = torch.cat([rows, extra])
    slots = [torch.empty_like(rows) for _ in range(world)]
    dist.all_gather(slots, rows)
    return torch.cat([slot[: int(n)] for slot, n in zip(slots, sizes)])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    found = torch.full((rank + 1, 4), float(rank))
    boxes = gather_ragged(found)
    assert boxes.shape == (world * (world + 1) // 2, 4)
    if rank == 0:
        print("total boxes", len(boxes))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
