import time

import torch
import torch.distributed as dist


class Deadline:
    def __init__(self, seconds, every):
        self.end = time.monotonic() + seconds
        self.every = every

    def passed(self, step):
        if step % self.every != 0:
            return False
        late = torch.tensor([int(time.monotonic() > self.end)])
        dist.all_reduce(late, op=dist.ReduceOp.MAX)
        return late.item() == 1


def main():
    dist.init_process_group("gloo")
    deadline = Deadline(seconds=1.0, every=8)
    step, state = 0, torch.zeros(4)
    while not deadline.passed(step):
        push = torch.ones(4)
        dist.all_reduce(push)
        state += push
        step += 1
    dist.destroy_process_group()
    print(step)


if __name__ == "__main__":
    main()
