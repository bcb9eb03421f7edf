import os
import signal
from dataclasses import dataclass, field
from typing import Optional

import torch
import torch.distributed as dist


@dataclass
class RunState:
    canceled: bool = False
    canceling_rank: Optional[int] = None
    reason: Optional[str] = None
    losses: list = field(default_factory=list)


class Loop:
    def __init__(self, model, optimizer, max_steps: int, check_every: int = 5):
        self.model, self.optimizer = model, optimizer
        self.max_steps, self.check_every = max_steps, check_every
        self.state = RunState()
        self.control_pg = dist.new_group(backend="gloo")
        signal.signal(signal.SIGTERM, lambda *_: self.cancel("SIGTERM"))

    def cancel(self, reason: str) -> None:
        """May be called on any rank; takes effect at the next check."""
        self.state.canceling_rank = dist.get_rank()
        self.state.reason = reason

    def _check_canceled(self) -> None:
        if self.state.canceled:
            return
        who = self.state.canceling_rank if self.state.canceling_rank is not None else -1
        box = torch.tensor([who])
        dist.all_reduce(box, op=dist.ReduceOp.MAX, group=self.control_pg)
        who = int(box.item())
        if who >= 0:
            reason = [self.state.reason]
            dist.broadcast_object_list(reason, src=who, group=self.control_pg)
            self.state.canceled = True
            self.state.canceling_rank, self.state.reason = who, reason[0]
            print(f"rank {dist.get_rank()}: canceled by rank {who}: {reason[0]}")

    def fit(self):
        for step in range(1, self.max_steps + 1):
            loss = self.model(torch.randn(32, 64, device="cuda")).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if not torch.isfinite(loss):
                self.cancel(f"loss is {loss.item()} at step {step}")
            if step % self.check_every == 0:
                self._check_canceled()
            if self.state.canceled:
                break
        if dist.get_rank() == 0:
            torch.save(self.model.module.state_dict(), "last.pt")
        dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda())
    Loop(net, torch.optim.SGD(net.parameters(), lr=0.5), 500).fit()
    dist.destroy_process_group()
