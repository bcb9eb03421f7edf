import os
import signal
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from speechgen.data import infinite_loader
from speechgen.model import FlowSpeech


@dataclass
class Settings:
    out: Path = Path("checkpoints")
    steps: int = 400_000
    save_every: int = 20_000
    batch: int = 24
    lr: float = 1e-4


class StopFlag:
    """Set by Slurm some minutes before the job is taken away."""

    def __init__(self, *signums):
        self.raised = False
        for signum in signums:
            signal.signal(signum, self._handle)

    def _handle(self, signum, frame):
        self.raised = True


def save(model, optimizer, step, out):
    if dist.get_rank() == 0:
        out.mkdir(parents=True, exist_ok=True)
        tmp = out / "last.tmp"
        torch.save({"model": model.module.state_dict(), "optim": optimizer.state_dict(), "step": step}, tmp)
        os.replace(tmp, out / f"step_{step:08d}.pt")
    dist.barrier()


def train(cfg: Settings):
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    stop = StopFlag(signal.SIGUSR1, signal.SIGTERM)
    model = DistributedDataParallel(FlowSpeech().to(device), device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    batches = infinite_loader(cfg.batch, dist.get_rank(), dist.get_world_size())
    for step in range(1, cfg.steps + 1):
        audio, text = next(batches)
        loss = model(audio.to(device), text.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        flag = torch.tensor(int(stop.raised), device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        leaving = bool(flag.item())
        if leaving or step % cfg.save_every == 0:
            save(model, optimizer, step, cfg.out)
        if leaving:
            break


if __name__ == "__main__":
    dist.init_process_group("nccl")
    train(Settings())
    dist.destroy_process_group()
