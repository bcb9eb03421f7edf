import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class QualityError(RuntimeError):
    pass


def gate(report, minimum):
    if report["accuracy"] < minimum:
        raise QualityError(f"accuracy {report['accuracy']:.3f} is below {minimum}")


def validate(model, batches):
    counts = torch.zeros(2)
    with torch.inference_mode():
        for x, y in batches:
            counts[0] += (model.module(x).argmax(dim=1) == y).sum()
            counts[1] += len(y)
    out = [torch.zeros(2) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    dist.gather(counts, out, dst=0)
    if out is None:
        return None
    right, seen = torch.stack(out).sum(dim=0).tolist()
    return {"accuracy": right / seen, "seen": seen}


def main(net, train_batches, val_batches, minimum=0.9):
    dist.init_process_group("gloo")
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in train_batches:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    report = validate(model, val_batches)
    if report is not None:
        gate(report, minimum)
    dist.barrier()
    dist.destroy_process_group()
    if report is not None:
        print(json.dumps(report))
