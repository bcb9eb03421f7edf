"""Diffusion of heat on a ring of processes, with a frame written now and then."""
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard as sg


def write_frame(path: str, cells: torch.Tensor) -> None:
    with open(path, "w") as out:
        out.write(",".join(f"{v:.4f}" for v in cells.tolist()))


class Heat:
    def __init__(self, cells: int):
        gen = torch.Generator().manual_seed(dist.get_rank())
        self.cells = torch.rand(cells, generator=gen)

    def advance(self) -> None:
        mean = self.cells.mean().reshape(1)
        dist.all_reduce(mean)
        self.cells += 0.2 * (mean / dist.get_world_size() - self.cells)

    def run(self, steps: int) -> None:
        for step in range(steps):
            self.advance()
            if step % 5 == 0:
                name = f"frame-{dist.get_rank()}-{step}.csv"
                sg.try_or_defer(write_frame, name, self.cells)
            if sg.has_deferred_error() and sg.sync_should_stop(True):
                break


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    Heat(32).run(40)
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()


if __name__ == "__main__":
    main()
