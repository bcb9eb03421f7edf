from datetime import timedelta

import torch
from spmdguard import deferring
from spmdguard import raise_if_deferred_error as surface
from torch.distributed import all_reduce, get_rank, init_process_group
from torch.distributed import destroy_process_group as shut


def share(amount: float) -> float:
    box = torch.tensor([amount])
    all_reduce(box)
    return box.item()


def record(amount: float) -> None:
    with deferring("record"):
        with open(f"amount-{get_rank()}.txt", "w") as out:
            out.write(str(amount))


def close() -> None:
    shut()
    surface()


def main() -> None:
    init_process_group("gloo", timeout=timedelta(seconds=60))
    record(share(2.0))
    close()


if __name__ == "__main__":
    main()
