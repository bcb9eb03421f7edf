"""Writes in flight are retired in step on all processes."""
import collections
import random
from datetime import timedelta

import torch
import torch.distributed as dist


class InFlight:
    def __init__(self):
        self.due: collections.deque[int] = collections.deque()
        self.retired = 0

    def start(self, now: int, takes: int) -> None:
        self.due.append(now + takes)

    def finished(self, now: int) -> int:
        count = 0
        for due in self.due:
            if due > now:
                break
            count += 1
        return count

    def retire(self, now: int) -> None:
        if not self.due:
            return
        ready = torch.tensor([self.finished(now)])
        dist.all_reduce(ready, op=dist.ReduceOp.MIN)
        for _ in range(int(ready)):
            self.due.popleft()
            self.retired += 1


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    draw = random.Random(dist.get_rank())
    queue = InFlight()
    for now in range(40):
        if draw.random() < 0.4:
            queue.start(now, takes=draw.randint(1, 3))
        queue.retire(now)
    dist.destroy_process_group()
    print(queue.retired, "retired,", len(queue.due), "left")


if __name__ == "__main__":
    main()
