import logging
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, sync_should_stop

log = logging.getLogger("fit")


def gradient(weight: torch.Tensor, gen: torch.Generator) -> torch.Tensor:
    rows = torch.randn(16, 3, generator=gen)
    return rows.T @ (rows @ weight - rows.sum(dim=1)) / len(rows)


def fit(steps: int) -> torch.Tensor:
    gen = torch.Generator().manual_seed(dist.get_rank())
    weight = torch.zeros(3)
    for step in range(steps):
        grad = gradient(weight, gen)
        dist.all_reduce(grad)
        log.debug("step %d: gradient reduced", step)
        weight = weight - 0.1 * grad / dist.get_world_size()
        if sync_should_stop(has_deferred_error()):
            break
    return weight


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    weight = fit(20)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    log.info("weight %s", weight.tolist())


if __name__ == "__main__":
    main()
