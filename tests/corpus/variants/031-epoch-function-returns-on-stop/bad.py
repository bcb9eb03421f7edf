from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, rank_local, sync_should_stop
from torch.nn.parallel import DistributedDataParallel


@rank_local(only="main")
def log(epoch, step, loss):
    with open("train.log", "a") as out:
        out.write(f"{epoch}/{step} {loss:.4f}\n")


def one_epoch(epoch, model, opt):
    for step in range(50):
        x = torch.randn(16, 4)
        loss = (model(x) - x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        log(epoch, step, loss.item())
        if sync_should_stop(has_deferred_error()):
            return step
    return 50


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        one_epoch(epoch, model, opt)
        total = torch.tensor([model.module.weight.norm().item()])
        dist.all_reduce(total)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
