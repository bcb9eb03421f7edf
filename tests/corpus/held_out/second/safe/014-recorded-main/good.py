import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

log = logging.getLogger("solver")


class Solver:
    def __init__(self, size):
        gen = torch.Generator().manual_seed(dist.get_rank())
        self.block = torch.rand(size, size, generator=gen) + size * torch.eye(size)

    def trace(self):
        value = self.block.trace().reshape(1)
        dist.all_reduce(value)
        return value.item()


@record
def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    try:
        value = Solver(int(os.environ.get("SIZE", "6"))).trace()
    except Exception:
        log.exception("process %d failed", dist.get_rank())
        raise
    if dist.get_rank() == 0:
        log.info("trace %.3f", value)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
