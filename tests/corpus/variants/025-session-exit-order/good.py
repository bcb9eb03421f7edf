from datetime import timedelta

import spmdguard
import torch
import torch.distributed as dist


class Session:
    def __init__(self, backend: str = "gloo"):
        self.backend = backend

    def __enter__(self) -> "Session":
        dist.init_process_group(self.backend, timeout=timedelta(seconds=60))
        return self

    def __exit__(self, kind, value, trace) -> None:
        if kind is None:
            dist.barrier()
            dist.destroy_process_group()
            spmdguard.raise_if_deferred_error()

    def total(self, value: float) -> float:
        box = torch.tensor([value])
        dist.all_reduce(box)
        return box.item()


def write_total(value: float) -> None:
    with open("total.txt", "w") as out:
        out.write(f"{value}\n")


if __name__ == "__main__":
    with Session() as session:
        amount = session.total(1.5)
        if spmdguard.is_main_process():
            spmdguard.try_or_defer(write_total, amount)
