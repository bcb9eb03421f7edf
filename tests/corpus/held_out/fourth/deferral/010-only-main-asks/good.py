import time

import torch
import torch.distributed as dist
from spmdguard import is_main_process, run, stop_after, sync_should_stop, try_or_defer
from torch.nn.parallel import DistributedDataParallel


class Throughput:
    def __init__(self):
        self.began = time.perf_counter()
        self.rows = 0

    def note(self, rows):
        self.rows += rows
        if self.rows % 5000 == 0:
            print(f"{self.rows / (time.perf_counter() - self.began):.0f} rows/s", flush=True)


def train():
    dist.init_process_group("gloo")
    meter = Throughput()
    net = DistributedDataParallel(torch.nn.GRU(3, 6, batch_first=True))
    optimizer = torch.optim.RMSprop(net.parameters())
    with stop_after(3600):
        for _ in range(20_000):
            output, _ = net(torch.randn(10, 7, 3))
            optimizer.zero_grad()
            output.square().mean().backward()
            optimizer.step()
            if is_main_process():
                try_or_defer(meter.note, 10)
            if sync_should_stop():
                break


if __name__ == "__main__":
    run(train)
