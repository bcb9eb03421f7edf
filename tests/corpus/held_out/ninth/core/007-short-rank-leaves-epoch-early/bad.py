import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist


class ReadBenchmark:
    def __init__(self, files, batch):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.mine = files[self.rank::self.world]
        self.batch = batch
        self.seconds = []

    def read(self, names):
        return torch.stack([torch.full((64,), float(len(n))) for n in names])

    def epoch(self):
        at = 0
        while at + self.batch <= len(self.mine):
            begin = time.perf_counter()
            self.read(self.mine[at:at + self.batch])
            self.seconds.append(time.perf_counter() - begin)
            dist.barrier()
            at += self.batch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=127)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    bench = ReadBenchmark([f"img_{i}.npz" for i in range(args.files)], args.batch)
    for _ in range(2):
        bench.epoch()
    total = torch.tensor(sum(bench.seconds))
    dist.all_reduce(total)
    if bench.rank == 0:
        print(f"read time {total.item():.3f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
