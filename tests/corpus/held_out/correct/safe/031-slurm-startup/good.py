"""Start-up under srun, one task per GPU, and requeue on the time-limit signal."""
import logging
import os
import re
import signal
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("slurm")


@dataclass(frozen=True)
class Placement:
    rank: int
    local_rank: int
    world_size: int
    master: str
    port: int

    @classmethod
    def from_slurm(cls):
        env = os.environ
        return cls(rank=int(env["SLURM_PROCID"]), local_rank=int(env["SLURM_LOCALID"]),
                   world_size=int(env["SLURM_NTASKS"]), master=first_host(env["SLURM_JOB_NODELIST"]),
                   port=10000 + int(env["SLURM_JOB_ID"]) % 20000)

    @property
    def is_leader(self):
        return self.rank == 0


def first_host(nodelist):
    """node[003-007,010] -> node003"""
    m = re.match(r"([^\[,]+)(?:\[(\d+))?", nodelist)
    return m.group(1) + (m.group(2) or "")


class Requeue:
    """SIGUSR1 comes some minutes before the limit, to any of the tasks first."""

    def __init__(self, place, device):
        self.place, self.device = place, device
        self.hit = False
        signal.signal(signal.SIGUSR1, self._handler)

    def _handler(self, signum, frame):
        self.hit = True

    def agreed(self):
        flag = torch.tensor([int(self.hit)], device=self.device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def submit(self):
        if self.place.is_leader:
            subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]], check=False)


def start():
    place = Placement.from_slurm()
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = place.master, str(place.port)
    device = torch.device("cuda", place.local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", init_method="env://", rank=place.rank, world_size=place.world_size,
                            timeout=timedelta(minutes=15))
    logging.basicConfig(level=logging.INFO if place.is_leader else logging.WARNING,
                        format=f"[{place.rank}] %(message)s")
    log.info("%d tasks, master %s:%d", place.world_size, place.master, place.port)
    return place, device


def save(path, model, optimizer, step):
    partial = path.with_suffix(".partial")
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, partial)
    partial.replace(path)


def load(path, place, net, optimizer, device):
    """The leader reads; the step goes out by broadcast and the weights with DDP."""
    step = torch.zeros(1, dtype=torch.long, device=device)
    box = [None]
    if place.is_leader and path.exists():
        blob = torch.load(path, map_location="cpu")
        net.load_state_dict(blob["model"])
        step.fill_(blob["step"])
        box[0] = blob["optimizer"]
    dist.broadcast(step, src=0)
    dist.broadcast_object_list(box, src=0, device=device)
    if box[0] is not None:
        optimizer.load_state_dict(box[0])
    return int(step.item())


def main():
    place, device = start()
    path = Path(os.environ.get("CKPT", f"job-{os.environ['SLURM_JOB_ID']}.pt"))
    torch.manual_seed(place.rank)
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    first = load(path, place, net, optimizer, device)
    model = DDP(net, device_ids=[device.index])
    requeue = Requeue(place, device)

    total, check_every = 200_000, 25
    for step in range(first, total):
        x = torch.randn(128, 256, device=device)
        loss = nn.functional.mse_loss(model(x), x.cumsum(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            log.info("step %d loss %.4f", step, loss.item())
        if step % check_every == 0 and requeue.agreed():
            if place.is_leader:
                save(path, model, optimizer, step + 1)
            dist.barrier()
            requeue.submit()
            log.info("left at step %d", step)
            break
    else:
        if place.is_leader:
            save(path, model, optimizer, total)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
