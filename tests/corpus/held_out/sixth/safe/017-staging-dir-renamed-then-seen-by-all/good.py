import contextlib
import shutil
import time
from pathlib import Path

import torch
import torch.distributed as dist


def wait_until(check, what, limit=120.0):
    t0 = time.monotonic()
    while not check():
        if time.monotonic() - t0 > limit:
            raise TimeoutError(f"not seen after {limit}s: {what}")
        time.sleep(0.2)


@contextlib.contextmanager
def staged(target: Path, overwrite: bool):
    tmp = target.with_name(target.name + "-tmp")
    rank = dist.get_rank()
    if rank == 0:
        shutil.rmtree(tmp, ignore_errors=True)
        if target.exists() and overwrite:
            shutil.rmtree(target)
        tmp.mkdir(parents=True)
    dist.barrier()
    if rank != 0:
        wait_until(tmp.exists, str(tmp))
    yield tmp
    dist.barrier()
    if rank == 0:
        tmp.replace(target)
    else:
        wait_until(target.exists, str(target))
    dist.barrier()


class ShardCheckpointer:
    def __init__(self, root):
        self.root = Path(root)

    def save(self, step, model, optim, overwrite=False):
        rank = dist.get_rank()
        with staged(self.root / f"step{step}", overwrite) as folder:
            torch.save(model.state_dict(), folder / f"model_{rank}.pt")
            torch.save(optim.state_dict(), folder / f"optim_{rank}.pt")
            if rank == 0:
                (folder / "world.txt").write_text(str(dist.get_world_size()))

    def load(self, step, model, optim):
        folder = self.root / f"step{step}"
        rank = dist.get_rank()
        model.load_state_dict(torch.load(folder / f"model_{rank}.pt"))
        optim.load_state_dict(torch.load(folder / f"optim_{rank}.pt"))
        dist.barrier()
