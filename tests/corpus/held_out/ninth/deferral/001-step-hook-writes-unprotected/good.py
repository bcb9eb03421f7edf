"""Power iteration with step hooks."""
import csv
from datetime import timedelta

import torch
import torch.distributed as dist
import spmdguard as sg


class CsvHook:
    def __init__(self, path: str):
        self.path = path

    def after_step(self, step: int, value: float) -> None:
        with open(self.path, "a", newline="") as f:
            csv.writer(f).writerow([step, value])


def iterate(matrix: torch.Tensor, hooks: list, steps: int) -> torch.Tensor:
    vector = torch.ones(matrix.shape[0])
    for step in range(steps):
        image = matrix @ vector
        dist.all_reduce(image)
        norm = image.norm()
        vector = image / norm
        for hook in hooks:
            sg.try_or_defer(hook.after_step, step, norm.item())
        if sg.sync_should_stop(sg.has_deferred_error()):
            break
    return vector


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    gen = torch.Generator().manual_seed(dist.get_rank())
    hooks = [CsvHook("norms.csv")] if sg.is_main_process() else []
    vector = iterate(torch.rand(6, 6, generator=gen), hooks, steps=8)
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()
    print(vector.tolist())


if __name__ == "__main__":
    main()
