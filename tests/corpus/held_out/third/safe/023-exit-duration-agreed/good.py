import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

STARTED = time.time()


def should_exit(minutes):
    spent = (time.time() - STARTED) / 60.0
    done = torch.tensor([int(spent > minutes)], dtype=torch.int32)
    dist.all_reduce(done, op=dist.ReduceOp.MAX)
    return bool(done.item())


def train(weight, iterations, minutes, folder):
    for iteration in range(1, iterations + 1):
        grad = torch.ones_like(weight)
        dist.all_reduce(grad)
        weight -= 0.01 * grad
        if should_exit(minutes):
            dcp.save({"weight": weight}, checkpoint_id=f"{folder}/iter{iteration}")
            return iteration
    return iterations


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    cell = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(cell, src=0)
    last = train(torch.zeros(4), 10, minutes=-1.0 if dist.get_rank() == 1 else 60.0, folder=cell[0])
    assert last == 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
