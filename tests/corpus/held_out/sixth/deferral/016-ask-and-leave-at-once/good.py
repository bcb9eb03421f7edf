"""Speech recognition training with a non-finite guard."""
import logging
import math
import os
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import spmdguard

logger = logging.getLogger("asr")


class Batch(NamedTuple):
    frames: torch.Tensor
    targets: torch.Tensor
    frame_lens: torch.Tensor
    target_lens: torch.Tensor


def synth(device, n=4, t=120, u=20):
    return Batch(
        torch.randn(t, n, 80, device=device),
        torch.randint(1, 40, (n, u), device=device),
        torch.full((n,), t, device=device),
        torch.full((n,), u, device=device),
    )


class Trainer:
    def __init__(self, device):
        self.device = device
        self.model = DDP(nn.Linear(80, 40).to(device))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.ctc = nn.CTCLoss(zero_infinity=False)

    def step(self, batch):
        logp = self.model(batch.frames).log_softmax(-1)
        loss = self.ctc(logp, batch.targets, batch.frame_lens, batch.target_lens)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self, steps):
        for step in range(steps):
            value = self.step(synth(self.device))
            if not math.isfinite(value):
                logger.error("loss %s at step %d", value, step)
                spmdguard.request_stop("non-finite loss")
            if spmdguard.sync_should_stop():
                return


def train():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    Trainer(device).fit(30_000)


if __name__ == "__main__":
    spmdguard.run(train)
