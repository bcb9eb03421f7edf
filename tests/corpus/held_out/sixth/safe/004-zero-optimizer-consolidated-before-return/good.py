import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class Saver:
    def __init__(self, root, every):
        self.root, self.every = root, every

    def due(self, step):
        return step > 0 and step % self.every == 0

    def write(self, step, ddp, optimizer, sched):
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer.consolidate_state_dict(to=0)
        if dist.get_rank() != 0:
            return
        blob = {
            "step": step,
            "model": ddp.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "sched": sched.state_dict(),
        }
        torch.save(blob, f"{self.root}/step{step:07d}.pt")


def run(cfg, model, loader, device):
    ddp = DDP(model.to(device), device_ids=[device.index])
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.AdamW, lr=cfg.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps)
    saver = Saver(cfg.out, cfg.save_every)
    stream = iter(loader)
    for step in range(1, cfg.steps + 1):
        x, y = next(stream)
        loss = torch.nn.functional.cross_entropy(ddp(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        sched.step()
        optimizer.zero_grad(set_to_none=True)
        if saver.due(step):
            saver.write(step, ddp, optimizer, sched)
            dist.barrier()
    return ddp
