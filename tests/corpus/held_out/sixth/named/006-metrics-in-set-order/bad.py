"""Averages a few named metrics at the end of each epoch."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

TRACKED = {"loss", "grad_norm", "accuracy", "confidence"}


def averaged(values):
    out = {}
    for name in TRACKED & values.keys():
        tensor = torch.tensor(float(values[name]))
        dist.all_reduce(tensor)
        out[name] = tensor.item() / dist.get_world_size()
    return out


def epoch(model, opt, steps):
    values = dict.fromkeys(("loss", "grad_norm", "accuracy", "confidence", "steps"), 0.0)
    for _ in range(steps):
        x = torch.randn(32, 20)
        y = (x[:, 0] > 0).long()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        values["grad_norm"] += nn.utils.clip_grad_norm_(model.parameters(), 1.0).item() / steps
        opt.step()
        values["loss"] += loss.item() / steps
        values["accuracy"] += (logits.argmax(1) == y).float().mean().item() / steps
        values["confidence"] += logits.softmax(1).amax(1).mean().item() / steps
        values["steps"] += 1
    return values


def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(20, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(10):
        metrics = averaged(epoch(model, opt, 100))
        if dist.get_rank() == 0:
            print(number, metrics)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
