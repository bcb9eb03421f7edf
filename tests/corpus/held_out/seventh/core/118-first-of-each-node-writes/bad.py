import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

# project space, the same file system on all nodes
RUN_DIR = Path(os.environ.get("SHARED_RUN_DIR", "/tmp/shared/speech"))


def save_checkpoint(epoch, model):
    path = RUN_DIR / f"epoch{epoch:03d}.pt"
    torch.save({"epoch": epoch, "model": model.module.state_dict()}, path)
    last = RUN_DIR / "last.pt"
    if last.is_symlink():
        last.unlink()
    last.symlink_to(path.name)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    local_rank = int(os.environ["LOCAL_RANK"])
    RUN_DIR.mkdir(parents=True, exist_ok=True)
    model = DDP(torch.nn.GRU(10, 20))
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(5):
        for _ in range(4):
            opt.zero_grad()
            model(torch.randn(12, 3, 10))[0].pow(2).mean().backward()
            opt.step()
        if local_rank == 0:
            save_checkpoint(epoch, model)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
