import os
from datetime import timedelta

import torch
import torch.distributed as dist


def dispatch(tokens, targets, world):
    order = torch.argsort(targets, stable=True)
    out_counts = torch.bincount(targets, minlength=world)
    table = [torch.zeros_like(out_counts) for _ in range(world)]
    dist.all_gather(table, out_counts)
    me = dist.get_rank()
    in_counts = [int(row[me]) for row in table]
    received = tokens.new_empty(sum(in_counts), tokens.shape[1])
    dist.all_to_all_single(
        received,
        tokens[order].contiguous(),
        output_split_sizes=in_counts,
        input_split_sizes=out_counts.tolist(),
    )
    return received


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, world = dist.get_rank(), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(rank)
    n = 4 + 3 * rank
    tokens = torch.randn(n, 2)
    targets = torch.randint(0, world, (n,))
    got = dispatch(tokens, targets, world)
    if got.shape[0] == 0:
        print("no tokens for", rank)
    total = torch.tensor([got.shape[0]])
    dist.all_reduce(total)
    assert total.item() == sum(4 + 3 * r for r in range(world))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
