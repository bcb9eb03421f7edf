"""Power iteration with a table of the largest eigenvalue."""
import csv
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop


class Table:
    def __init__(self, path: str):
        self.path = path

    def add(self, *cells) -> None:
        with open(self.path, "a", newline="") as f:
            csv.writer(f).writerow(cells)


def iterate(matrix: torch.Tensor, table: Table, rounds: int) -> torch.Tensor:
    vector = torch.ones(matrix.shape[1])
    for number in range(rounds):
        product = matrix.T @ (matrix @ vector)
        dist.all_reduce(product)
        size = product.norm()
        vector = product / size
        if is_main_process():
            table.add(number, f"{size.item():.6f}")
        if sync_should_stop(has_deferred_error()):
            break
    return vector


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rows = torch.randn(20, 6, generator=torch.Generator().manual_seed(dist.get_rank()))
    vector = iterate(rows, Table("eigen.csv"), rounds=12)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(vector.tolist())


if __name__ == "__main__":
    main()
