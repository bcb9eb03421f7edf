from datetime import timedelta

import torch
import torch.distributed as dist


class Norm:
    """Overlaps the sum with the local part of the work."""

    def __init__(self, values):
        self.local = values
        self.square = values.pow(2).sum().reshape(1)

    def begin(self):
        self.work = dist.all_reduce(self.square, async_op=True)

    def finish(self):
        length = self.square.sqrt()
        self.work.wait()
        return self.local / length


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    part = Norm(torch.ones(1 << 16) * (dist.get_rank() + 1))
    part.begin()
    print(part.finish()[0].item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
