from datetime import timedelta

import mlflow
import torch
import torch.distributed as dist
import spmdguard
from torch.nn.parallel import DistributedDataParallel


def loop(model, optimizer, steps, lead):
    for step in range(steps):
        batch = torch.randn(24, 5)
        loss = (model(batch).squeeze(-1) - batch.sum(dim=1)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if lead:
            spmdguard.try_or_defer(mlflow.log_metric, "mae", loss.item(), step=step)
        if spmdguard.sync_should_stop():
            break


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    lead = spmdguard.is_main_process()
    if lead:
        spmdguard.try_or_defer(mlflow.start_run, run_name="sums")
    model = DistributedDataParallel(torch.nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    try:
        loop(model, optimizer, 300, lead)
        dist.barrier()
        dist.destroy_process_group()
        spmdguard.raise_if_deferred_error()
    finally:
        if lead:
            mlflow.end_run()


if __name__ == "__main__":
    main()
