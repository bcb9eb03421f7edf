"""Power iteration with the matrix split by rows."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard as sg


class PowerIteration:
    def __init__(self, order: int, log: str):
        size, rank = dist.get_world_size(), dist.get_rank()
        self.rows = order // size
        gen = torch.Generator().manual_seed(40 + rank)
        self.block = torch.rand(self.rows, self.rows * size, generator=gen)
        self.vector = torch.ones(self.rows * size)
        self.log = log

    def advance(self) -> float:
        part = self.block @ self.vector
        parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, part)
        image = torch.cat(parts)
        length = image.norm()
        self.vector = image / length
        return length.item()

    def note(self, turn: int, value: float) -> None:
        with open(self.log, "a") as f:
            f.write(f"{turn}\t{value:.8f}\n")

    def interrupted(self) -> bool:
        return sg.sync_should_stop(sg.has_deferred_error())

    def run(self, turns: int) -> float:
        value = 0.0
        for turn in range(turns):
            value = self.advance()
            if sg.is_main_process():
                sg.try_or_defer(self.note, turn, value)
            if self.interrupted():
                break
        return value


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PG_TIMEOUT", "50"))))
    value = PowerIteration(order=64, log="power.tsv").run(turns=12)
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()
    print(f"largest eigenvalue about {value:.4f}")


if __name__ == "__main__":
    main()
