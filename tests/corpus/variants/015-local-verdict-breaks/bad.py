from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, raise_if_deferred_error


def keep_sample(folder, index, cloud):
    torch.save(cloud[:10].clone(), f"{folder}/sample-{index}.pt")


def spread(cloud, rounds, folder):
    for index in range(rounds):
        center = cloud.mean(dim=0)
        dist.all_reduce(center)
        center /= dist.get_world_size()
        cloud = cloud + 0.1 * (center - cloud)
        with deferring("sample"):
            keep_sample(folder, index, cloud)
        if has_deferred_error():
            break
    return cloud


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    cloud = torch.randn(100, 3, generator=torch.Generator().manual_seed(dist.get_rank()))
    spread(cloud, 50, "samples")
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
