"""Scheduler loop that moves cache pages to host memory in the background."""
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist


class PageMover:
    def __init__(self, workers=2):
        self.pool = ThreadPoolExecutor(workers)
        self.inflight = {}

    def submit(self, page, tensor):
        self.inflight[page] = self.pool.submit(tensor.to, "cpu", copy=True)

    def reap(self):
        for page in [p for p, job in self.inflight.items() if job.done()]:
            self.inflight.pop(page).result()

    def peers_are_empty(self):
        left = torch.tensor([len(self.inflight)])
        dist.all_reduce(left, op=dist.ReduceOp.MAX)
        return left.item() == 0

    @property
    def idle(self):
        self.reap()
        return not self.inflight and self.peers_are_empty()


class Scheduler:
    def __init__(self, device="cpu"):
        self.device = device
        self.rank = dist.get_rank()
        self.mover = PageMover()
        self.tick = 0

    def next_requests(self, source):
        box = [next(source, None) if self.rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def serve(self, source):
        while (requests := self.next_requests(source)) is not None:
            for number in requests:
                page = torch.randn(64, 64, device=self.device) * number
                self.mover.submit((self.tick, number), page)
            if self.mover.idle:
                self.compact()
            self.tick += 1

    def compact(self):
        time.sleep(0.001)


def main():
    dist.init_process_group("gloo")
    feed = iter([[1, 2, 3], [], [4], [], [5, 6], []]) if dist.get_rank() == 0 else iter(())
    Scheduler().serve(feed)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
