import json
import logging
from datetime import timedelta

import torch
import torch.distributed as dist

log = logging.getLogger("fit")


class Fit:
    def __init__(self, size: int, every: int):
        self.weight, self.every = torch.zeros(size), every

    @property
    def writes(self) -> bool:
        return not dist.get_rank()

    def report(self, step: int, grad: torch.Tensor) -> None:
        row = {"step": step, "norm": grad.norm()}
        log.info(json.dumps(row))

    def run(self, steps: int) -> None:
        for step in range(steps):
            grad = self.weight - torch.randn_like(self.weight)
            dist.all_reduce(grad)
            self.weight -= 0.1 * grad / dist.get_world_size()
            if step % self.every == 0 and self.writes:
                self.report(step, grad)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(dist.get_rank())
    Fit(size=12, every=10).run(steps=200)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
