"""Fine-tune a classifier; `touch STOP` in the run directory ends it early."""
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def stop_asked(run_dir: Path) -> bool:
    answer = [dist.get_rank() == 0 and (run_dir / "STOP").exists()]
    dist.broadcast_object_list(answer, src=0)
    return answer[0]


def accuracy(model, loader) -> float:
    right = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            right += torch.tensor([(model(x).argmax(1) == y).sum().item(), len(y)], dtype=torch.float)
    dist.all_reduce(right)
    return (right[0] / right[1]).item()


def finetune(net, train_set, val_loader, run_dir: Path, epochs: int) -> None:
    dist.init_process_group("gloo")
    model = DDP(net)
    sampler = DistributedSampler(train_set, shuffle=True, drop_last=True)
    loader = DataLoader(train_set, batch_size=16, sampler=sampler, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if stop_asked(run_dir):
            break
        value = accuracy(model.module, val_loader)
        if dist.get_rank() == 0:
            print(f"{epoch} {value:.4f}", flush=True)
    dist.destroy_process_group()
