import logging
from datetime import timedelta

import torch
import torch.distributed as dist

log = logging.getLogger("io-bench")


class Bench:
    def __init__(self, num_files, batch_size, epochs):
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.batch_size = batch_size
        self.epochs = epochs
        self.files = [f for f in range(num_files) if f % self.size == self.rank]
        self.steps = len(self.files) // batch_size

    def read(self, step):
        first = step * self.batch_size
        return torch.tensor(self.files[first:first + self.batch_size], dtype=torch.float32)

    def compute(self, block):
        return (block.outer(block) / (1 + block.sum())).sum()

    def _train(self, epoch):
        total = torch.zeros(1)
        for step in range(self.steps):
            total += self.compute(self.read(step))
            dist.barrier()
        log.info("epoch %d rank %d total %.2f", epoch, self.rank, total.item())

    def run(self):
        for epoch in range(self.epochs):
            self._train(epoch)
            dist.barrier()


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    Bench(num_files=143, batch_size=16, epochs=2).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
