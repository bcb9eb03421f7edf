import os
import re
from datetime import timedelta

import torch
import torch.distributed as dist

FOLDER = os.environ.get("SAVE_FOLDER", "/tmp/composer_like")


def shard_file(step):
    return os.path.join(FOLDER, f"ba{step}-rank{dist.get_rank()}.pt")


def latest_step():
    wanted = re.compile(rf"ba(\d+)-rank{dist.get_rank()}\.pt$")
    steps = [int(m.group(1)) for m in map(wanted.match, os.listdir(FOLDER)) if m]
    return max(steps, default=0)


class ShardedState:
    def __init__(self, numel=600):
        world = dist.get_world_size()
        self.shard = torch.zeros(numel // world)
        self.step = 0

    def save(self):
        torch.save({"shard": self.shard, "step": self.step}, shard_file(self.step))

    def autoresume(self):
        step = latest_step()
        if step:
            saved = torch.load(shard_file(step))
            self.shard, self.step = saved["shard"], saved["step"]


def fit(state, max_batches, every):
    while state.step < max_batches:
        full = torch.randn(600)
        dist.all_reduce(full)
        state.shard += 0.1 * full.chunk(dist.get_world_size())[dist.get_rank()]
        state.step += 1
        if state.step % every == 0:
            state.save()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    os.makedirs(FOLDER, exist_ok=True)
    state = ShardedState()
    state.autoresume()
    fit(state, max_batches=40, every=10)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
