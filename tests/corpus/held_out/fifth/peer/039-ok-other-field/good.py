from dataclasses import dataclass, replace

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Run:
    name: str
    rank: int
    world: int
    sync_every: int = 5

    def on(self, step):
        return step % self.sync_every == 0


def label(run, level):
    base = level
    level = dist.get_rank()
    return f"{run.name}/{base}/r{level}"


def describe(run):
    run = replace(run, sync_every=run.rank + 1)
    return f"{run.name}: every {run.sync_every}"


def main():
    dist.init_process_group("gloo")
    run = Run("ablation", dist.get_rank(), dist.get_world_size())
    level = 1
    tag = label(run, level)
    print(tag, describe(run))
    ema = torch.zeros(4)
    for step in range(50):
        ema = 0.9 * ema + 0.1 * torch.rand(4)
        if run.on(step):
            dist.all_reduce(ema)
            ema /= run.world
        if level > 0 and step % 25 == 0:
            dist.barrier()
    if run.world > 1:
        dist.broadcast(ema, src=0)
    if run.rank == run.world - 1:
        print(tag, ema.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
