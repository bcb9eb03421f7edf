import shutil
from pathlib import Path

import torch
import torch.distributed as dist


class ShardedSaver:
    def __init__(self, root):
        self.root = Path(root)
        self.rank = dist.get_rank()

    def marker(self, folder):
        return folder.with_name(folder.name + "-unfinished")

    def save(self, step, shard, opt):
        folder = self.root / f"step{step:07d}"
        if self.rank == 0:
            self.root.mkdir(parents=True, exist_ok=True)
            self.marker(folder).touch()
            folder.mkdir(exist_ok=True)
        dist.barrier()
        payload = {"model": shard.state_dict(), "opt": opt.state_dict(), "step": step}
        torch.save(payload, folder / f"mp_rank_{self.rank:03d}.pt")
        dist.barrier()
        if self.rank == 0:
            self.marker(folder).unlink()
        dist.barrier()

    def latest(self):
        found = [None]
        if self.rank == 0:
            whole = [p for p in sorted(self.root.glob("step*")) if p.is_dir()]
            for broken in [p for p in whole if self.marker(p).exists()]:
                shutil.rmtree(broken)
                whole.remove(broken)
            found = [str(whole[-1]) if whole else None]
        dist.broadcast_object_list(found, src=0)
        return found[0]
