import torch
import torch.distributed as dist
import torch.nn.functional as F


def simple(t, world):
    room = [torch.zeros_like(t) for _ in range(world)]
    dist.all_gather(room, t)
    return room


def gather_ragged(t):
    world = dist.get_world_size()
    sizes = [int(s) for s in simple(torch.tensor([t.numel()]), world)]
    longest = max(sizes)
    if min(sizes) == longest:
        return simple(t, world)
    padded = F.pad(t, (0, longest - t.numel()))
    return [row[:n] for row, n in zip(simple(padded, world), sizes)]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    scores = torch.full((rank + 1,), float(rank))
    out = gather_ragged(scores)
    assert [o.numel() for o in out] == list(range(1, world + 1))
    same = gather_ragged(torch.ones(3))
    assert len(same) == world
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
