from datetime import timedelta

import torch
import torch.distributed as dist


class Bucket:
    def __init__(self, n):
        self.flat = torch.ones(n)
        self.work = None

    def launch(self):
        self.work = dist.all_reduce(self.flat, async_op=True)

    def finish(self):
        self.work.wait()
        return self.flat


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    bucket = Bucket(1 << 20)
    bucket.launch()
    flat = bucket.finish()
    flat.mul_(0.5)
    print(flat[0].item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
