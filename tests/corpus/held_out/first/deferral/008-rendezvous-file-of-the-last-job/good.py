"""srun -N4 --ntasks-per-node=8 python pretrain.py --shared /scratch/me/pretrain"""
import argparse
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class SlurmJob:
    def __init__(self, shared: Path):
        self.rank = int(os.environ["SLURM_PROCID"])
        self.world = int(os.environ["SLURM_NTASKS"])
        self.local = int(os.environ["SLURM_LOCALID"])
        self.job = os.environ["SLURM_JOB_ID"]
        self.shared = shared

    def __enter__(self):
        self.shared.mkdir(parents=True, exist_ok=True)
        restart = os.environ.get("SLURM_RESTART_COUNT", "0")
        meeting = self.shared / f"rendezvous-{self.job}-{restart}"
        torch.cuda.set_device(self.local)
        dist.init_process_group(
            "nccl",
            init_method=f"file://{meeting.resolve()}",
            rank=self.rank,
            world_size=self.world,
            timeout=timedelta(minutes=15),
        )
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            dist.barrier()
            dist.destroy_process_group()

    def say(self, *words):
        if self.rank == 0:
            print(f"[job {self.job}]", *words, flush=True)


def pretrain(job, steps, width):
    model = DDP(torch.nn.TransformerEncoderLayer(width, 8, batch_first=True).cuda(), device_ids=[job.local])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        x = torch.randn(8, 128, width, device="cuda")
        loss = (model(x) - x.roll(1, 1)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0:
            job.say(step, loss.item())


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--shared", type=Path, required=True)
    p.add_argument("--steps", type=int, default=10000)
    p.add_argument("--width", type=int, default=512)
    a = p.parse_args()
    with SlurmJob(a.shared) as job:
        pretrain(job, a.steps, a.width)


if __name__ == "__main__":
    main()
