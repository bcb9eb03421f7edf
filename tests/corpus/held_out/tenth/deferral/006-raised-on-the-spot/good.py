"""Sum of squares over the job, each process leaves a receipt."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard


@spmdguard.rank_local
def receipt(folder: str, value: float) -> None:
    with open(os.path.join(folder, f"receipt-{os.getpid()}"), "w") as f:
        f.write(f"{value}\n")


@spmdguard.collective
def square_sum(values: torch.Tensor) -> float:
    total = values.pow(2).sum().reshape(1)
    dist.all_reduce(total)
    return total.item()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    values = torch.arange(5.0) + dist.get_rank()
    total = square_sum(values)
    receipt(os.environ.get("RECEIPTS", "."), total)
    dist.barrier()
    dist.destroy_process_group()
    spmdguard.raise_if_deferred_error()
    print(f"sum of squares {total:.2f}")


if __name__ == "__main__":
    main()
