"""Two columns, each with its reduction."""
import torch
import torch.distributed as dist

REDUCE = {
    0: lambda t: dist.all_reduce(t, op=dist.ReduceOp.SUM),
    1: lambda t: dist.all_reduce(t, op=dist.ReduceOp.MAX),
}


def table(rank, rows):
    gen = torch.Generator().manual_seed(rank)
    return torch.rand(rows, 2, generator=gen)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = table(rank, 100)
    sums, peaks = data[:, 0].sum(), data[:, 1].max()
    for column, value in enumerate((sums, peaks)):
        kind = column % len(REDUCE)
        REDUCE[kind](value)
    if rank == 0:
        print(f"sum {sums:.3f} peak {peaks:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
