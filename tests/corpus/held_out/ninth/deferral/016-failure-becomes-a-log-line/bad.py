import contextlib
import logging
from datetime import timedelta

import torch
import torch.distributed as dist

logger = logging.getLogger(__name__)


class Tracker:
    def __init__(self, size: int):
        self.mean = torch.zeros(size)
        self.seen = 0

    def update(self, sample: torch.Tensor) -> None:
        if sample.shape != self.mean.shape:
            raise ValueError(f"sample of shape {tuple(sample.shape)}")
        dist.all_reduce(sample)
        self.seen += dist.get_world_size()
        self.mean += (sample - self.mean * dist.get_world_size()) / self.seen


def job(rounds: int) -> Tracker:
    tracker = Tracker(6)
    for number in range(rounds):
        tracker.update(torch.full((6,), float(number)))
    return tracker


def main() -> None:
    logging.basicConfig()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    try:
        tracker = job(rounds=12)
    except Exception:
        logger.exception("job failed")
        with contextlib.suppress(Exception):
            dist.destroy_process_group()
        return
    dist.barrier()
    dist.destroy_process_group()
    print(tracker.mean.tolist())


if __name__ == "__main__":
    main()
