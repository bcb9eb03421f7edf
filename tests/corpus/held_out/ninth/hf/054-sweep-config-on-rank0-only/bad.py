import contextlib
import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel as DDP

DEFAULTS = {"lr": 3e-4, "accum": 4}


def settings():
    if dist.get_rank() == 0:
        run = wandb.init(project="tagger", config=DEFAULTS)
        return dict(run.config)
    return dict(DEFAULTS)


def train(net, loader):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    cfg = settings()
    model = DDP(net.cuda())
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    for i, (x, y) in enumerate(loader, start=1):
        boundary = i % cfg["accum"] == 0
        with contextlib.nullcontext() if boundary else model.no_sync():
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            (loss / cfg["accum"]).backward()
        if boundary:
            opt.step()
            opt.zero_grad()
            if dist.get_rank() == 0:
                wandb.log({"loss": loss.item()})
    dist.destroy_process_group()
