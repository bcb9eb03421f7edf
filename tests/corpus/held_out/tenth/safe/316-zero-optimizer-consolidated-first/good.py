import io

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def snapshot(model, opt, keeper):
    opt.consolidate_state_dict(to=keeper)
    if dist.get_rank() != keeper:
        return b""
    out = io.BytesIO()
    torch.save({"model": model.module.state_dict(), "opt": opt.state_dict()}, out)
    return out.getvalue()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(16, 4))
    opt = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)
    keeper = dist.get_world_size() - 1
    for step in range(6):
        opt.zero_grad()
        model(torch.randn(8, 16)).sum().backward()
        opt.step()
        if step % 3 == 2:
            blob = snapshot(model, opt, keeper)
            if blob:
                print(f"step {step}: {len(blob)} bytes")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
