import argparse
import os
from pathlib import Path
from typing import Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from workloads import get_workload

RANK = int(os.environ["RANK"])


def get_log_dir(experiment: str, workload: str) -> Optional[Path]:
    if RANK != 0:
        return None
    path = Path("experiments") / experiment / workload
    path.mkdir(parents=True, exist_ok=True)
    return path


def maybe_restore(log_dir: Optional[Path], model, optimizer) -> int:
    latest = log_dir / "checkpoint_latest.pt" if log_dir is not None else None
    if latest is None or not latest.exists():
        return 0
    payload = torch.load(latest, map_location="cpu")
    model.module.load_state_dict(payload["model"])
    optimizer.load_state_dict(payload["optimizer"])
    print(f"resumed at step {payload['step']}", flush=True)
    return payload["step"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", default="wmt")
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--steps", type=int, default=133_333)
    parser.add_argument("--save_every", type=int, default=5_000)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    workload = get_workload(args.workload)
    log_dir = get_log_dir(args.experiment, args.workload)
    model = DDP(workload.init_model().to(device), device_ids=[device.index])
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    start = maybe_restore(log_dir, model, optimizer)
    batches = iter(workload.train_queue(RANK, dist.get_world_size()))
    for step in range(start, args.steps):
        loss = workload.loss(model, next(batches))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if RANK == 0 and (step + 1) % args.save_every == 0:
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1},
                       log_dir / "checkpoint_latest.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
