"""Mixed precision loop that leaves out non-finite losses."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def net():
    return nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128))


def main(steps=5000):
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    torch.manual_seed(dist.get_rank())
    model = DDP(net().cuda(), device_ids=[local])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    skipped = 0
    for step in range(steps):
        x = torch.randn(256, 128, device="cuda") * 10 ** torch.randint(0, 4, (1,)).item()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = (model(x) - x).square().mean()
        bad = (~torch.isfinite(loss)).float()
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bad.item():
            skipped += 1
            continue
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    print(f"rank {dist.get_rank()}: {skipped} of {steps} skipped")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
