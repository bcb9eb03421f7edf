import os
import time

import torch
import torch.distributed as dist


class WallTime:
    def __init__(self, margin):
        limit = float(os.environ.get("JOB_SECONDS", "0.4"))
        self.end = time.time() + limit
        self.margin = margin

    def remaining(self):
        left = torch.tensor([self.end - time.time()], dtype=torch.float64)
        dist.all_reduce(left, op=dist.ReduceOp.MIN)
        return left.item()


def save(step):
    dist.barrier()
    if dist.get_rank() == 0:
        print("saved at", step)
    dist.barrier()


def main():
    dist.init_process_group("gloo")
    clock = WallTime(margin=0.1)
    step = 0
    while clock.remaining() > clock.margin:
        batch = torch.rand(4)
        dist.all_reduce(batch)
        step += 1
        time.sleep(0.02 * (1 + dist.get_rank()))
    save(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
