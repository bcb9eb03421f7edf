import pickle
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, is_main_process, sync_should_stop, try_or_defer


def export(path, centres):
    with open(path, "wb") as f:
        pickle.dump(centres.numpy(), f)


def assign(points, centres):
    return torch.cdist(points, centres).argmin(1)


def cluster(points, k, rounds):
    centres = torch.linspace(-1, 1, k).unsqueeze(1).repeat(1, points.shape[1])
    for turn in range(rounds):
        label = assign(points, centres)
        sums = torch.zeros(k, points.shape[1]).index_add_(0, label, points)
        count = torch.bincount(label, minlength=k).float()
        dist.all_reduce(sums)
        dist.all_reduce(count)
        centres = sums / count.clamp(min=1).unsqueeze(1)
        if is_main_process():
            try_or_defer(export, f"centres-{turn}.pkl", centres)
        if sync_should_stop(has_deferred_error()):
            break
    return centres


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    points = torch.randn(60, 2, generator=torch.Generator().manual_seed(dist.get_rank()))
    centres = cluster(points, k=4, rounds=5)
    dist.barrier()
    dist.destroy_process_group()
    print("clustered", centres.tolist())


if __name__ == "__main__":
    main()
