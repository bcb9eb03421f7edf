import logging
import math

import torch
import torch.distributed as dist

log = logging.getLogger("train")


def anyone(flag):
    t = torch.tensor(float(flag))
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return bool(t)


def loss_of(step, rank):
    if step == 2 and rank == 1:
        return torch.tensor(math.nan)
    return torch.tensor(1.0 / (step + 1))


def main():
    dist.init_process_group("gloo")
    rank, taken = dist.get_rank(), 0
    for step in range(5):
        loss = loss_of(step, rank)
        bad = not math.isfinite(loss)
        if bad:
            log.warning("rank %d: loss %s in step %d", rank, loss.item(), step)
        if anyone(bad):
            continue
        grad = loss * torch.ones(4)
        dist.all_reduce(grad)
        taken += 1
    assert taken == (4 if dist.get_world_size() > 1 else 5)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
