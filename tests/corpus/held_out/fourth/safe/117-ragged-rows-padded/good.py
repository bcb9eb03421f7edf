import torch
import torch.distributed as dist


def gather_ragged(rows):
    count = torch.tensor([len(rows)])
    counts = [torch.zeros_like(count) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, count)
    longest = int(max(c.item() for c in counts))
    if longest == 0:
        return []
    padded = torch.zeros(longest, rows.shape[1])
    padded[: len(rows)] = rows
    parts = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(parts, padded)
    return [part[: int(c.item())] for part, c in zip(parts, counts)]


if __name__ == "__main__":
    dist.init_process_group("gloo")
    mine = torch.full((dist.get_rank() * 2, 3), float(dist.get_rank()))
    print([tuple(p.shape) for p in gather_ragged(mine)])
    dist.destroy_process_group()
