"""Train a small vocoder under SLURM; survive preemption."""
import argparse
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class PreemptionGuard:
    def __init__(self, signals=(signal.SIGTERM, signal.SIGUSR1)):
        self.requested = False
        for s in signals:
            signal.signal(s, self._on_signal)

    def _on_signal(self, signum, _frame):
        self.requested = True

    def should_stop(self):
        flag = torch.tensor(int(self.requested), device="cuda")
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())


def save(path, step, model, optimizer):
    if dist.get_rank() == 0:
        tmp = path.with_suffix(".tmp")
        torch.save({"step": step, "model": model.module.state_dict(), "opt": optimizer.state_dict()}, tmp)
        tmp.rename(path)
    dist.barrier()


def train_step(model, optimizer, wav):
    estimate = model(wav)
    loss = nn.functional.l1_loss(estimate, wav)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("exp/vocoder"))
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--ckpt-freq", type=int, default=5_000)
    args = parser.parse_args()

    local_rank = int(os.environ["SLURM_LOCALID"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(
        "nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"])
    )
    args.out.mkdir(parents=True, exist_ok=True)
    guard = PreemptionGuard()
    net = nn.Sequential(nn.Conv1d(1, 32, 9, padding=4), nn.ELU(), nn.Conv1d(32, 1, 9, padding=4))
    model = DDP(net.cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)

    for step in range(1, args.steps + 1):
        loss = train_step(model, optimizer, torch.randn(8, 1, 24_000, device="cuda"))
        stopping = guard.should_stop()
        if stopping or step % args.ckpt_freq == 0:
            save(args.out / f"checkpoint_{step:08d}.pt", step, model, optimizer)
        if stopping:
            if dist.get_rank() == 0:
                print(f"stopped at step {step}, loss {loss.item():.4f}")
            break
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
