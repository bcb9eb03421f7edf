import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

LOCAL_RANK = int(os.getenv("LOCAL_RANK", -1))
RANK = int(os.getenv("RANK", -1))


class EarlyStopping:
    def __init__(self, patience=30):
        self.best, self.best_epoch, self.patience = 0.0, 0, patience

    def __call__(self, epoch, fitness):
        if fitness >= self.best:
            self.best, self.best_epoch = fitness, epoch
        return epoch - self.best_epoch >= self.patience


def validate(net, images, boxes):
    net.eval()
    with torch.no_grad():
        error = (net(images) - boxes).abs().mean().item()
    net.train()
    return 1.0 / (1.0 + error)


def train(epochs, patience, save_dir):
    device = torch.device("cuda", LOCAL_RANK)
    model = DDP(torch.nn.Linear(64, 4).to(device), device_ids=[LOCAL_RANK])
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.937)
    stopper = EarlyStopping(patience)
    for epoch in range(epochs):
        for _ in range(50):
            loss = (model(torch.randn(16, 64, device=device)) - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        verdict = [False]
        if RANK in (-1, 0):
            fitness = validate(model.module, torch.randn(64, 64, device=device), torch.ones(64, 4, device=device))
            torch.save({"epoch": epoch, "model": model.module.state_dict()}, save_dir / "last.pt")
            verdict = [stopper(epoch, fitness)]
        dist.broadcast_object_list(verdict, src=0)
        if verdict[0]:
            break


if __name__ == "__main__":
    torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group("nccl", timeout=timedelta(minutes=30))
    out = Path("runs")
    out.mkdir(exist_ok=True)
    train(300, 30, out)
    dist.destroy_process_group()
