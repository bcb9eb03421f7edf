"""Fit a mixture by stochastic EM, report every few rounds."""
import argparse
import json
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import spmdguard as sg


class Report:
    def __init__(self, folder: Path):
        self.folder = folder

    def write(self, turn: int, means: torch.Tensor) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"turn": turn, "means": means.tolist()})
        (self.folder / f"{turn:04d}.json").write_text(text)


class Mixture:
    def __init__(self, count: int, seed: int):
        gen = torch.Generator().manual_seed(seed)
        self.means = torch.randn(count, 2, generator=gen)

    def round(self, points: torch.Tensor) -> None:
        share = torch.softmax(-torch.cdist(points, self.means).square(), dim=1)
        total = torch.cat([share.T @ points, share.sum(0)[:, None]], dim=1)
        dist.all_reduce(total)
        self.means = total[:, :2] / total[:, 2:].clamp(min=1e-6)


def fit(mixture: Mixture, report: Report, turns: int, every: int) -> int:
    gen = torch.Generator().manual_seed(40 + dist.get_rank())
    for turn in range(turns):
        mixture.round(torch.randn(64, 2, generator=gen))
        if turn % every == 0 and sg.is_main_process():
            sg.try_or_defer(report.write, turn, mixture.means)
            if sg.sync_should_stop(sg.has_deferred_error()):
                return turn
    return turns


def main() -> None:
    cli = argparse.ArgumentParser()
    cli.add_argument("--turns", type=int, default=30)
    cli.add_argument("--every", type=int, default=5)
    cli.add_argument("--out", type=Path, default=Path("mixture"))
    opt = cli.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    fit(Mixture(3, seed=5), Report(opt.out), opt.turns, opt.every)
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()


if __name__ == "__main__":
    main()
