import os
import signal

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import fully_shard


class CheckpointManager:
    def __init__(self, folder):
        self.folder = folder
        self.pending = None

    def save(self, step, model, optimizer):
        self.wait()
        model_sd, optim_sd = get_state_dict(model, optimizer)
        self.pending = dcp.async_save(
            {"model": model_sd, "optim": optim_sd},
            checkpoint_id=os.path.join(self.folder, f"step_{step}"),
        )

    def wait(self):
        if self.pending is not None:
            self.pending.result()
            self.pending = None


class StopFlag:
    """True on all ranks as soon as any rank was told to stop."""

    def __init__(self):
        self.seen = False
        signal.signal(signal.SIGUSR1, self._handle)

    def _handle(self, signum, frame):
        self.seen = True

    def __call__(self):
        flag = torch.tensor([int(self.seen)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    manager = CheckpointManager("/checkpoints/run7")
    should_stop = StopFlag()
    for step in range(1, 10_001):
        x = torch.randn(32, 1024, device="cuda")
        loss = (model(x) - x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        stop = should_stop()
        if stop or step % 500 == 0:
            manager.save(step, model, optimizer)
        if stop:
            break
    manager.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
