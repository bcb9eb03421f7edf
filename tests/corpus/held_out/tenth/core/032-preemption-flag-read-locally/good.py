import logging
import signal
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger(__name__)


class Preemption:
    """Remembers that the scheduler wants the machine back."""

    def __init__(self, *signums):
        self.requested = False
        self.stopped = False
        for signum in signums:
            signal.signal(signum, self._note)

    def _note(self, signum, frame):
        self.requested = True
        log.warning("signal %d: will stop after this step", signum)

    def agreed(self):
        flag = torch.tensor([int(self.requested)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        self.stopped = bool(flag.item())
        return self.stopped


def train(model, opt, preemption, steps):
    for step in range(steps):
        opt.zero_grad()
        model(torch.randn(8, 20)).pow(2).mean().backward()
        opt.step()
        if preemption.agreed():
            return step + 1
    return steps


def main():
    logging.basicConfig()
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    rank = dist.get_rank()
    preemption = Preemption(signal.SIGTERM, signal.SIGUSR1)
    model = DDP(torch.nn.Linear(20, 20))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    done = train(model, opt, preemption, steps=5000)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        torch.save({"step": done, "model": model.module.state_dict()}, "preempted.pt")
    if preemption.stopped:
        raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
