import threading

import torch
import torch.distributed as dist


class PreviewPool:
    """Renders sample images in threads of one process."""

    def __init__(self, workers):
        self.barrier = threading.Barrier(workers)
        self.done = [False] * workers

    def _work(self, rank, images):
        images[rank].clamp_(0, 1)
        self.barrier.wait()
        if rank == 0:
            self.done = [True] * len(self.done)
        self.barrier.wait()

    def render(self, images):
        threads = [
            threading.Thread(target=self._work, args=(i, images))
            for i in range(len(self.done))
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return images


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for _ in range(2):
        grad = torch.randn(8)
        dist.all_reduce(grad)
        if rank == 0:
            PreviewPool(3).render([torch.randn(4, 4) for _ in range(3)])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
