"""Recommendation model with an end-of-run summary over all ranks."""
import logging
import os

import torch
from torch import distributed as dist, nn
from torch.nn.parallel import DistributedDataParallel as DDP

import spmdguard

log = logging.getLogger("rec")


@spmdguard.rank_local(default=(None, None))
def read_shard(root, index):
    blob = torch.load(os.path.join(root, f"part-{index:05d}.pt"))
    return blob["ids"], blob["clicks"]


class Runner:
    def __init__(self, root, shards):
        self.root, self.shards = root, shards
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.net = DDP(nn.Sequential(nn.EmbeddingBag(10_000, 32), nn.Linear(32, 1)))
        self.opt = torch.optim.Adagrad(self.net.parameters(), lr=0.05)
        self.rows = torch.zeros(1)

    def step(self, index):
        ids, clicks = read_shard(self.root, index * self.world + self.rank)
        if ids is None:
            ids, clicks = torch.zeros(1, 4, dtype=torch.long), torch.zeros(1)
        loss = nn.functional.binary_cross_entropy_with_logits(self.net(ids).squeeze(1), clicks)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.rows += len(ids)

    def run(self):
        for index in range(self.shards // self.world):
            self.step(index)
            if spmdguard.sync_should_stop():
                break

    def close(self):
        spmdguard.raise_if_deferred_error()
        dist.all_reduce(self.rows)
        if self.rank == 0:
            log.info("rows seen: %d", int(self.rows))
        dist.destroy_process_group()


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo")
    runner = Runner(os.environ["SHARD_ROOT"], shards=4096)
    runner.run()
    runner.close()


if __name__ == "__main__":
    main()
