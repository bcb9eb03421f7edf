import re
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

FOLDER = Path("/tmp/sharded_run")


def shard_file(step):
    return FOLDER / f"step{step}_rank{dist.get_rank()}.pt"


def newest_step():
    steps = [-1]
    for path in FOLDER.glob(f"step*_rank{dist.get_rank()}.pt"):
        steps.append(int(re.match(r"step(\d+)_", path.name).group(1)))
    return max(steps)


def resume(shard):
    common = torch.tensor([newest_step()])
    dist.all_reduce(common, op=dist.ReduceOp.MIN)  # older files are kept, so all have this one
    step = int(common.item())
    if step < 0:
        return 0
    shard.copy_(torch.load(shard_file(step)))
    return step + 1


def main(total=100, every=20):
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    FOLDER.mkdir(parents=True, exist_ok=True)
    shard = torch.zeros(16)
    start = resume(shard)
    for step in range(start, total):
        grad = torch.randn(16)
        dist.all_reduce(grad)
        shard -= 0.01 * grad
        if step % every == every - 1:
            torch.save(shard, shard_file(step))
    print(f"rank {dist.get_rank()} went from {start} to {total}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
