import shutil
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def write_shard(folder, shard):
    """True when this rank's part is on disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(shard, folder / f"shard_{dist.get_rank()}.pt")
        return True
    except OSError as err:
        print(f"rank {dist.get_rank()}: {err}")
        return False


def checkpoint(root, step, shard, previous):
    folder = root / f"step{step}"
    ok = write_shard(folder, shard)
    landed = torch.tensor([int(ok)])
    dist.all_reduce(landed, op=dist.ReduceOp.MIN)
    if not landed.item():
        raise RuntimeError(f"step {step} not saved on all ranks")
    if dist.get_rank() == 0:
        (folder / "COMPLETE").touch()
        if previous is not None:
            shutil.rmtree(previous, ignore_errors=True)
    return folder


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    shard, last = torch.zeros(256), None
    for step in range(1, 41):
        grad = torch.randn(256)
        dist.all_reduce(grad)
        shard -= 0.01 * grad
        if step % 10 == 0:
            last = checkpoint(Path("/tmp/staged_run"), step, shard, last)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
