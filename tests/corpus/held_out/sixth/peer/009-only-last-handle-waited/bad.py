"""All-to-all sum with non-blocking point-to-point."""
import torch
import torch.distributed as dist

WIDTH = 1 << 16


def collect(mine, rank, size):
    slots = torch.zeros(size, WIDTH)
    slots[rank] = mine
    peers = [p for p in range(size) if p != rank]
    arrived = None
    for peer in peers:
        arrived = dist.irecv(slots[peer], src=peer)
    sent = [dist.isend(mine, dst=peer) for peer in peers]
    if arrived is not None:
        arrived.wait()
    for handle in sent:
        handle.wait()
    return slots.sum(dim=0)


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    total = collect(torch.full((WIDTH,), rank + 1.0), rank, size)
    assert torch.all(total == size * (size + 1) / 2), total
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
