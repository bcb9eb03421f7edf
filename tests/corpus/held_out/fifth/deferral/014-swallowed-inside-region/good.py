import logging
import shutil
import time
from pathlib import Path

import spmdguard
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("mirror")


class Mirror:
    def __init__(self, local, remote, tries=3):
        self.local, self.remote, self.tries = Path(local), Path(remote), tries

    def push(self, name):
        with spmdguard.deferring(f"mirror {name}"):
            for attempt in range(self.tries):
                try:
                    shutil.copy2(self.local / name, self.remote / name)
                    return
                except OSError as exc:
                    log.warning("copy of %s failed (%d): %s", name, attempt, exc)
                    if attempt == self.tries - 1:
                        raise
                    time.sleep(2 ** attempt)


@spmdguard.rank_local
def write_shard(folder, name, module):
    torch.save(module.state_dict(), Path(folder) / name)


def main(steps=500):
    spmdguard.init_process_group("gloo")
    model = DDP(torch.nn.Linear(30, 30))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    mirror = Mirror("ckpt", "/mnt/bucket/ckpt")
    for step in range(steps):
        opt.zero_grad()
        model(torch.randn(8, 30)).square().mean().backward()
        opt.step()
        if step and step % 100 == 0:
            name = f"{step}-{dist.get_rank()}.pt"
            write_shard("ckpt", name, model.module)
            mirror.push(name)
        if spmdguard.sync_should_stop():
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()
    log.info("all shards mirrored")


if __name__ == "__main__":
    main()
