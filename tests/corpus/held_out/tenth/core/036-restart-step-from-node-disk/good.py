"""Elastic job: torchrun --nnodes=1:4 --max-restarts=3 ... ; snapshots lie on node-local disks."""
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

LOCAL_SNAPSHOT = Path("/local/scratch/snapshot.pt")
TOTAL = 2000


def save_snapshot(model, step):
    if int(os.environ["LOCAL_RANK"]) == 0:
        part = LOCAL_SNAPSHOT.with_suffix(".part")
        torch.save({"model": model.module.state_dict(), "step": step}, part)
        os.replace(part, LOCAL_SNAPSHOT)


def load_snapshot(module):
    box = [None]
    if dist.get_rank() == 0:
        try:
            if LOCAL_SNAPSHOT.exists():
                box[0] = torch.load(LOCAL_SNAPSHOT, map_location="cpu")
        except Exception as exc:
            box[0] = exc
    dist.broadcast_object_list(box, src=0)  # one snapshot for the whole job
    if isinstance(box[0], Exception):
        raise box[0]
    if box[0] is None:
        return 0
    module.load_state_dict(box[0]["model"])
    return box[0]["step"]


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=3))
    module = torch.nn.Linear(64, 64)
    start = load_snapshot(module)
    model = DDP(module)
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(start, TOTAL):
        opt.zero_grad()
        model(torch.randn(16, 64)).pow(2).mean().backward()
        opt.step()
        if (step + 1) % 100 == 0:
            save_snapshot(model, step + 1)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
