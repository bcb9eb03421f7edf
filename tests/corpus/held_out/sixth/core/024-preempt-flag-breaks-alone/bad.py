import os
import signal
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class TtsConfig:
    run_dir: str = "runs/tts"
    max_steps: int = 300_000
    ckpt_freq: int = 90_000
    lr: float = 1e-4
    dim: int = 256


class Preemption:
    def __init__(self):
        self.requested = False
        for sig in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(sig, self._mark)

    def _mark(self, signum, frame):
        self.requested = True

    def agreed(self, device):
        flag = torch.tensor(float(self.requested), device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())


class Backbone(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rnn = torch.nn.GRU(dim, dim, 2, batch_first=True)
        self.out = torch.nn.Linear(dim, dim)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


def save(cfg, step, model, optim):
    if dist.get_rank() == 0:
        path = os.path.join(cfg.run_dir, f"checkpoint_{step:08d}.pt")
        torch.save({"step": step, "model": model.module.state_dict(), "optim": optim.state_dict()}, path + ".tmp")
        os.replace(path + ".tmp", path)
    dist.barrier()


def main(cfg, batches):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    os.makedirs(cfg.run_dir, exist_ok=True)
    stop = Preemption()
    model = DDP(Backbone(cfg.dim).to(device), device_ids=[device.index])
    optim = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for step in range(1, cfg.max_steps + 1):
        x = next(batches).to(device)
        loss = (model(x[:, :-1]) - x[:, 1:]).abs().mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        if stop.requested:
            save(cfg, step, model, optim)
            break
        if step % cfg.ckpt_freq == 0:
            save(cfg, step, model, optim)
    dist.destroy_process_group()
