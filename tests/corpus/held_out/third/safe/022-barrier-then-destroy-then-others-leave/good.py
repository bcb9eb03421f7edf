import sys
from datetime import timedelta

import torch
import torch.distributed as dist


class Stage:
    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.layer = torch.nn.Linear(4, 4)

    def run(self, batch):
        x = batch
        if self.rank > 0:
            x = torch.empty(2, 4)
            dist.recv(x, src=self.rank - 1)
        x = torch.tanh(self.layer(x)).detach()
        if self.rank < self.world - 1:
            dist.send(x, dst=self.rank + 1)
            return None
        return x


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    stage = Stage()
    out = stage.run(torch.ones(2, 4))
    last = stage.rank == stage.world - 1
    dist.barrier()
    dist.destroy_process_group()
    if not last:
        sys.exit(0)
    print("output", tuple(out.shape))


if __name__ == "__main__":
    main()
