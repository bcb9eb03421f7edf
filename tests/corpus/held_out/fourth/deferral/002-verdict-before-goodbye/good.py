import os
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard as sg


@sg.rank_local(only="main", name="samples")
def dump_samples(folder: str, step: int, rows: torch.Tensor) -> None:
    os.makedirs(folder, exist_ok=True)
    torch.save(rows.cpu(), os.path.join(folder, f"{step:06d}.pt"))


class Trainer:
    def __init__(self, folder: str, max_steps: int) -> None:
        self.folder = folder
        self.max_steps = max_steps
        self.codebook = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))

    def step(self, rows: torch.Tensor) -> None:
        nearest = torch.cdist(rows, self.codebook).argmin(dim=1)
        sums = torch.zeros_like(self.codebook).index_add_(0, nearest, rows)
        counts = torch.bincount(nearest, minlength=16).float()
        dist.all_reduce(sums)
        dist.all_reduce(counts)
        used = counts > 0
        self.codebook[used] = sums[used] / counts[used, None]

    def fit(self) -> None:
        gen = torch.Generator().manual_seed(dist.get_rank() + 1)
        for step in range(self.max_steps):
            self.step(torch.randn(64, 4, generator=gen))
            dump_samples(self.folder, step, self.codebook)
            if sg.sync_should_stop():
                break

    def close(self) -> None:
        dist.barrier()
        dist.destroy_process_group()
        sg.raise_if_deferred_error()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=90))
    trainer = Trainer(os.environ.get("OUT", "samples"), max_steps=20)
    trainer.fit()
    trainer.close()


if __name__ == "__main__":
    main()
