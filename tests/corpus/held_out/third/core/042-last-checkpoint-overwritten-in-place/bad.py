import os
from datetime import timedelta

import torch
import torch.distributed as dist


class ShardSaver:
    def __init__(self, save_dir):
        self.save_dir = save_dir
        self.suffix = f"-shard{dist.get_rank()}"

    def last(self):
        return os.path.join(self.save_dir, f"checkpoint_last{self.suffix}.pt")

    def save(self, shard, updates):
        torch.save({"shard": shard, "num_updates": updates}, self.last())
        dist.barrier()

    def restore(self, shard):
        present = torch.tensor([float(os.path.exists(self.last()))])
        dist.all_reduce(present, op=dist.ReduceOp.MIN)
        if not present.item():
            return shard, 0
        saved = torch.load(self.last())
        return saved["shard"], saved["num_updates"]


def train(saver, max_update, interval):
    world, rank = dist.get_world_size(), dist.get_rank()
    shard, start = saver.restore(torch.zeros(4096 // world))
    for update in range(start + 1, max_update + 1):
        grad = torch.randn(4096)
        dist.all_reduce(grad)
        shard -= 1e-4 * grad.chunk(world)[rank]
        if update % interval == 0:
            saver.save(shard, update)
    return shard


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=20))
    where = os.environ.get("SAVE_DIR", "/tmp/metaseq_like")
    os.makedirs(where, exist_ok=True)
    train(ShardSaver(where), max_update=60, interval=20)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
