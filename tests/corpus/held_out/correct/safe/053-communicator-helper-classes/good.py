"""Trainer that talks to a communicator object instead of torch.distributed."""
import os
from abc import ABC, abstractmethod
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn


class Communicator(ABC):
    rank: int
    size: int

    @property
    def is_root(self):
        return self.rank == 0

    @abstractmethod
    def mean_(self, tensors): ...

    @abstractmethod
    def bcast_(self, tensors): ...

    @abstractmethod
    def bcast_obj(self, obj): ...

    @abstractmethod
    def gather_obj(self, obj): ...

    @abstractmethod
    def close(self): ...


class SingleProcess(Communicator):
    rank, size = 0, 1

    def mean_(self, tensors):
        return None

    def bcast_(self, tensors):
        return None

    def bcast_obj(self, obj):
        return obj

    def gather_obj(self, obj):
        return [obj]

    def close(self):
        return None


class TorchProcess(Communicator):
    def __init__(self):
        dist.init_process_group("gloo", timeout=timedelta(minutes=8))
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def _fused(self, tensors, op):
        tensors = list(tensors)
        if not tensors:
            return
        flat = torch.cat([t.detach().flatten() for t in tensors])
        op(flat)
        for t, piece in zip(tensors, flat.split([t.numel() for t in tensors])):
            t.detach().copy_(piece.view_as(t))

    def mean_(self, tensors):
        def op(flat):
            dist.all_reduce(flat)
            flat /= self.size
        self._fused(tensors, op)

    def bcast_(self, tensors):
        self._fused(tensors, lambda flat: dist.broadcast(flat, src=0))

    def bcast_obj(self, obj):
        box = [obj if self.is_root else None]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather_obj(self, obj):
        out = [None] * self.size if self.is_root else None
        dist.gather_object(obj, out, dst=0)
        return out

    def close(self):
        dist.barrier()
        dist.destroy_process_group()


def make_communicator():
    return TorchProcess() if int(os.environ.get("WORLD_SIZE", "1")) > 1 else SingleProcess()


class Problem:
    """Inverse problem: recover hidden coefficients from noisy observations."""

    def __init__(self, rank, degree=6):
        self.truth = torch.linspace(-1, 1, degree)
        self.gen = torch.Generator().manual_seed(40 + rank)

    def sample(self, n=256):
        x = torch.rand(n, 1, generator=self.gen) * 2 - 1
        powers = x ** torch.arange(len(self.truth))
        return powers, powers @ self.truth + 0.05 * torch.randn(n, generator=self.gen)


class Trainer:
    class Log:
        def __init__(self, owner):
            self.owner, self.rows = owner, []

        def add(self, step, loss):
            rows = self.owner.comm.gather_obj((self.owner.comm.rank, step, loss))
            if rows is not None:
                self.rows.append((step, sum(r[2] for r in rows) / len(rows)))
                print(f"step {step}: {self.rows[-1][1]:.5f}")

        def write(self, path):
            if self.owner.comm.is_root:
                Path(path).write_text("\n".join(f"{s},{v}" for s, v in self.rows))

    def __init__(self, comm, config):
        self.comm = comm
        self.config = comm.bcast_obj(config)
        self.problem = Problem(comm.rank)
        self.model = nn.Linear(len(self.problem.truth), 1, bias=False)
        comm.bcast_(self.model.parameters())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.config["lr"])
        self.log = Trainer.Log(self)

    def step(self):
        x, y = self.problem.sample()
        loss = nn.functional.mse_loss(self.model(x).squeeze(-1), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.comm.mean_(p.grad for p in self.model.parameters())
        self.optimizer.step()
        return loss.item()

    def error(self):
        """Distance from the truth: the weights are the same on all ranks, so is this."""
        return (self.model.weight.detach().squeeze(0) - self.problem.truth).norm().item()

    def run(self):
        for step in range(1, self.config["steps"] + 1):
            loss = self.step()
            if step % self.config["log_every"] == 0:
                self.log.add(step, loss)
                if self.comm.bcast_obj(self.error() < self.config["good_enough"]):
                    break
        self.log.write("log.csv")
        return self.error()


def main():
    comm = make_communicator()
    config = None
    if comm.is_root:
        config = {"lr": 0.02, "steps": 3000, "log_every": 100, "good_enough": 0.02}
    error = Trainer(comm, config).run()
    if comm.is_root:
        print(f"final error {error:.4f}")
    comm.close()


if __name__ == "__main__":
    main()
