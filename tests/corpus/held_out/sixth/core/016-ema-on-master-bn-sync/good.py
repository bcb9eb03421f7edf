import argparse
import copy
import os

import timm
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as NativeDDP


class ModelEma:
    def __init__(self, model, decay):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for e, m in zip(self.module.state_dict().values(), model.state_dict().values()):
            e.copy_(self.decay * e + (1.0 - self.decay) * m if e.is_floating_point() else m)


def distribute_bn(model, world_size):
    """Average the batch norm statistics of the workers."""
    for name, buf in model.named_buffers():
        if "running_mean" in name or "running_var" in name:
            dist.all_reduce(buf, op=dist.ReduceOp.SUM)
            buf /= float(world_size)


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    hit = torch.zeros(2, device=device)
    for x, y in loader:
        pred = model(x.to(device)).argmax(-1).cpu()
        hit += torch.tensor([(pred == y).sum().item(), y.numel()], device=device)
    dist.all_reduce(hit)
    return (hit[0] / hit[1]).item()


def main(make_loaders):
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="efficientnet_b0")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--model-ema", action="store_true")
    p.add_argument("--model-ema-decay", type=float, default=0.9998)
    args = p.parse_args()
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    model = timm.create_model(args.model, num_classes=1000).to(device)
    model_ema = None
    if args.model_ema:
        model_ema = ModelEma(model, args.model_ema_decay)
    ddp = NativeDDP(model, device_ids=[device.index])
    if model_ema is not None:
        model_ema.module.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    loader, loader_eval = make_loaders(rank, world)
    for epoch in range(args.epochs):
        ddp.train()
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(ddp(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if model_ema is not None:
                model_ema.update(model)
        distribute_bn(model, world)
        if model_ema is not None:
            distribute_bn(model_ema.module, world)
        acc = validate(model, loader_eval, device)
        if rank == 0:
            print(f"epoch {epoch} top1 {acc:.4f}")
            torch.save((model_ema.module if model_ema else model).state_dict(), "last.pth")
    dist.destroy_process_group()
