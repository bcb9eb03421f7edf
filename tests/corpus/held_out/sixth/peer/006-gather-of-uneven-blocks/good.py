"""Block distribution of rows, assembled everywhere at the end."""
import torch
import torch.distributed as dist

TOTAL, COLS = 103, 4


def share(rank, size):
    base, extra = divmod(TOTAL, size)
    return base + (rank < extra)


def assemble(block, size):
    rows = share(0, size)
    padded = torch.zeros(rows, COLS)
    padded[:len(block)] = block
    parts = [torch.empty(rows, COLS) for _ in range(size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:share(owner, size)] for owner, part in enumerate(parts)])


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    block = torch.full((share(rank, size), COLS), float(rank))
    full = assemble(block, size)
    if rank == 0:
        print(full.shape, full.sum().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
