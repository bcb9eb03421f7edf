import functools
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard as sg


class Histogram:
    """Each process counts its own draws."""

    def __init__(self, bins: int):
        self.counts = torch.zeros(bins)

    def add(self, draws: torch.Tensor) -> None:
        self.counts += torch.histc(draws, bins=len(self.counts), min=-3.0, max=3.0)

    def merged(self) -> torch.Tensor:
        out = self.counts.clone()
        dist.all_reduce(out)
        return out


def draw(hist: Histogram, rounds: int) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    for number in range(rounds):
        hist.add(torch.randn(256, generator=gen))
        if sg.is_main_process():
            with sg.deferring("progress"):
                with open("progress.txt", "a") as f:
                    print(number, file=f)
        if sg.sync_should_stop(sg.has_deferred_error()):
            return


def plot(hist: Histogram) -> None:
    merged = hist.merged()
    for count in merged.tolist():
        print("#" * int(60 * count / max(merged.max().item(), 1.0)))


if __name__ == "__main__":
    histogram = Histogram(bins=12)
    sg.run(functools.partial(draw, histogram, rounds=10), post_train=functools.partial(plot, histogram))
