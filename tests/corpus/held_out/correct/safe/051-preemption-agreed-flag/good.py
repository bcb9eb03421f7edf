"""Leave cleanly on SIGTERM or SIGINT: every rank stops after the same step."""
import os
import signal
import sys
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

EXIT_PREEMPTED = 85


@dataclass
class PreemptionGuard:
    device: torch.device
    every: int = 1
    signals: tuple = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)
    _raised: bool = False
    _old: dict = field(default_factory=dict)

    def __enter__(self):
        for s in self.signals:
            self._old[s] = signal.signal(s, self._note)
        return self

    def __exit__(self, *exc):
        for s, handler in self._old.items():
            signal.signal(s, handler)
        return False

    def _note(self, signum, frame):
        self._raised = True

    def should_leave(self, step):
        """Same answer on all ranks; asks the others on every `every`-th step only."""
        if step % self.every:
            return False
        bit = torch.tensor(float(self._raised), device=self.device)
        dist.all_reduce(bit, op=dist.ReduceOp.MAX)
        return bit.item() > 0


class State:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer
        self.step = 0
        self.tokens = 0

    def dump(self, path):
        torch.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "step": self.step, "tokens": self.tokens}, path + ".tmp")
        os.replace(path + ".tmp", path)

    def load(self, path, device):
        blob = torch.load(path, map_location=device)
        self.net.load_state_dict(blob["net"])
        self.optimizer.load_state_dict(blob["optimizer"])
        self.step, self.tokens = blob["step"], blob["tokens"]


def resume_if_present(state, path, device):
    here = torch.tensor([0], device=device)
    if dist.get_rank() == 0:
        here.fill_(int(os.path.exists(path)))
    dist.broadcast(here, src=0)
    if here.item():
        state.load(path, device)
        # the file stays untouched until all ranks are past this point
        dist.barrier()


def batch(step, rank, device, n=32, t=64):
    g = torch.Generator().manual_seed(step * 4096 + rank)
    ids = torch.randint(0, 500, (n, t + 1), generator=g)
    ids[:, 1::2] = (ids[:, 0::2][:, :ids[:, 1::2].size(1)] * 7 + 3) % 500
    return ids[:, :-1].to(device), ids[:, 1:].to(device)


class Model(nn.Module):
    def __init__(self, d=192):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(500, d), nn.LSTM(d, d, 2, batch_first=True), nn.Linear(d, 500)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def run(path, total_steps):
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=10))
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = Model().to(device)
    state = State(net, torch.optim.Adam(net.parameters(), lr=1e-3))
    resume_if_present(state, path, device)
    model = DDP(net, device_ids=[local])

    preempted = False
    with PreemptionGuard(device, every=5) as guard:
        while state.step < total_steps:
            x, y = batch(state.step, rank, device)
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            state.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            state.optimizer.step()
            state.step += 1
            state.tokens += y.numel() * dist.get_world_size()
            if rank == 0 and state.step % 100 == 0:
                print(f"step {state.step}: loss {loss.item():.4f}, {state.tokens} tokens")
            if guard.should_leave(state.step):
                preempted = True
                break
        if rank == 0:
            state.dump(path)
        # inside the guard, so that a second signal does not cut the save short
        dist.barrier()
    dist.destroy_process_group()
    return preempted


if __name__ == "__main__":
    sys.exit(EXIT_PREEMPTED if run("state.pt", 20_000) else 0)
