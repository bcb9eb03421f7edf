"""Publish each process's weight delta under a common version."""
import logging
import time
from pathlib import Path

import torch
import torch.distributed as dist

log = logging.getLogger("publish")


class FolderStore:
    def __init__(self, root):
        self.root = Path(root)

    def put(self, key, payload):
        target = self.root / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(payload)
        return len(payload)


def publish(store, version, payload):
    rank, world = dist.get_rank(), dist.get_world_size()
    plan = [None] * world
    dist.all_gather_object(plan, (rank, len(payload)))
    size = store.put(f"v{version}/part{rank}of{world}", payload)
    sizes = [None] * world if rank == 0 else None
    dist.gather_object(size, sizes, dst=0)
    if rank == 0:
        store.put(f"v{version}/index", repr(dict(zip(range(world), sizes))).encode())


def publish_with_retries(store, version, payload, attempts=3):
    for attempt in range(1, attempts + 1):
        try:
            return publish(store, version, payload)
        except OSError as err:
            log.warning("version %d, attempt %d: %s", version, attempt, err)
            time.sleep(2 ** attempt)
    raise RuntimeError(f"version {version} was not published")


def main():
    dist.init_process_group("gloo")
    store = FolderStore("published")
    weight = torch.zeros(256)
    for version in range(5):
        update = torch.randn(256)
        dist.all_reduce(update)
        weight += update
        share = weight.chunk(dist.get_world_size())[dist.get_rank()]
        publish_with_retries(store, version, share.numpy().tobytes())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
