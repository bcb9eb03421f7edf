import glob

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, pattern, rank, size):
        self.files = sorted(glob.glob(pattern))[rank::size]

    def __iter__(self):
        for name in self.files:
            yield from torch.load(name)


class Runner:
    def __init__(self, net, pattern):
        self.model = DDP(net)
        self.loader = DataLoader(Stream(pattern, dist.get_rank(), dist.get_world_size()), batch_size=8)
        self.optimizer = torch.optim.NAdam(self.model.parameters())

    def one_epoch(self):
        batches = iter(self.loader)
        steps = 0
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                break
            loss = self.model(batch).norm(dim=-1).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            steps += 1
        return steps


def main():
    dist.init_process_group("gloo")
    runner = Runner(torch.nn.Linear(256, 16), "/data/features/*.pt")
    for epoch in range(4):
        steps = runner.one_epoch()
        print(f"rank {dist.get_rank()}: epoch {epoch}, {steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
