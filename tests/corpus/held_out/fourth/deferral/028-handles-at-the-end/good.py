import collections

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, sync_should_stop


class DelayedMean:
    """Averages a statistic a few steps late, to overlap with compute."""

    def __init__(self, delay):
        self.delay = delay
        self.pending = collections.deque()

    def push(self, t):
        self.pending.append((dist.all_reduce(t, async_op=True), t))
        return self.pop() if len(self.pending) > self.delay else None

    def pop(self):
        work, t = self.pending.popleft()
        work.wait()
        return t / dist.get_world_size()

    def drain(self):
        return [self.pop() for _ in range(len(self.pending))]


def main():
    dist.init_process_group("gloo")
    means = DelayedMean(delay=3)
    sheet = open(f"stats-{dist.get_rank()}.txt", "a")
    for step in range(1000):
        late = means.push(torch.rand(2))
        with deferring("sheet"):
            if late is not None:
                sheet.write(f"{step} {late.tolist()}\n")
        if sync_should_stop(has_deferred_error()):
            break
    means.drain()
    dist.destroy_process_group()
    raise_if_deferred_error()
    sheet.close()


if __name__ == "__main__":
    main()
