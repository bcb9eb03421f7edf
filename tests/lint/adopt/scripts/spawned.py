"""Processes started by the script itself, with a worker function."""

import os
import shutil
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def main():
    mp.spawn(main_worker, nprocs=2, args=(2, sys.argv[1], sys.argv[2]))


def main_worker(rank, world_size, port, folder):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    train_loader = [torch.randn(4, 8) for _ in range(3)]
    best = 0.0
    for epoch in range(3):
        # train for one epoch
        train(train_loader, model, optimizer, epoch)

        # remember the best
        score = validate(train_loader, model)
        scheduler.step()
        is_best = score > best
        best = max(score, best)
        if rank == 0:
            save_checkpoint({"epoch": epoch, "model": model.state_dict()}, is_best, folder)
    dist.destroy_process_group()


def train(train_loader, model, optimizer, epoch):
    model.train()
    for i, batch in enumerate(train_loader):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i == 0:
            print(f"epoch {epoch}", flush=True)


def validate(loader, model):
    model.eval()
    with torch.no_grad():
        total = sum(model(batch).sum() for batch in loader)
    dist.all_reduce(total)
    return total.item()


def save_checkpoint(state, is_best, folder, filename="checkpoint.pth.tar"):
    if os.environ.get("FAIL_AT") == str(state["epoch"]):
        raise OSError("no space left")
    torch.save(state, os.path.join(folder, filename))
    if is_best:
        shutil.copyfile(os.path.join(folder, filename), os.path.join(folder, "model_best.pth.tar"))


if __name__ == "__main__":
    main()
