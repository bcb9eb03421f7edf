import logging
import os
import shutil
from datetime import timedelta

import torch
import torch.distributed as dist

log = logging.getLogger("ckpt")


class Store:
    def __init__(self, root):
        self.root = root

    def put(self, path, key):
        if key == os.environ.get("FAIL_KEY", "step4/part1.pt"):
            raise OSError(f"SlowDown: please reduce your request rate ({key})")
        target = os.path.join(self.root, key)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(path, target)


def save(store, step, part):
    rank = dist.get_rank()
    local = f"/tmp/part{rank}.pt"
    try:
        torch.save(part, local)
        store.put(local, f"step{step}/part{rank}.pt")
    except OSError as err:
        log.error("rank %d: step %d not saved: %s", rank, step, err)
        return False
    dist.barrier()
    if rank == 0:
        with open(os.path.join(store.root, "latest"), "w") as fh:
            fh.write(str(step))
    return True


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    store, part, failures = Store("/tmp/bucket"), torch.zeros(8), 0
    for step in range(1, 9):
        grad = torch.randn(8)
        dist.all_reduce(grad)
        part -= 0.1 * grad
        if step % 2 == 0 and not save(store, step, part):
            failures += 1
    log.info("%d saves failed", failures)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
