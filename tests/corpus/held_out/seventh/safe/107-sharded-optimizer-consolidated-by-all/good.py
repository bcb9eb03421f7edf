import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def save(path, model, opt, step):
    opt.consolidate_state_dict(to=0)
    if dist.get_rank() != 0:
        return
    torch.save(
        {"step": step, "model": model.module.state_dict(), "opt": opt.state_dict()}, path
    )


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(6, 3))
    opt = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3
    )
    folder = tempfile.mkdtemp()
    for step in range(1, 7):
        opt.zero_grad()
        model(torch.randn(4, 6)).pow(2).mean().backward()
        opt.step()
        if step % 3 == 0:
            save(os.path.join(folder, f"{step}.pt"), model, opt, step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
