"""k-means with a plot of the centres after every round."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop, try_or_defer


def draw(centres: torch.Tensor, number: int) -> None:
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots()
    axis.scatter(centres[:, 0], centres[:, 1])
    figure.savefig(f"centres-{number}.png")
    plt.close(figure)


def cluster(points: torch.Tensor, rounds: int) -> torch.Tensor:
    centres = torch.rand(3, 2, generator=torch.Generator().manual_seed(0))
    for number in range(rounds):
        nearest = torch.cdist(points, centres).argmin(dim=1)
        sums = torch.zeros(3, 3)
        sums[:, :2].index_add_(0, nearest, points)
        sums[:, 2] = torch.bincount(nearest, minlength=3)
        dist.all_reduce(sums)
        centres = sums[:, :2] / sums[:, 2:].clamp(min=1)
        if is_main_process():
            try_or_defer(draw, centres, number)
        if is_main_process() and sync_should_stop(has_deferred_error()):
            break
    return centres


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    gen = torch.Generator().manual_seed(10 + dist.get_rank())
    centres = cluster(torch.rand(100, 2, generator=gen), rounds=6)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(centres.tolist())


if __name__ == "__main__":
    main()
