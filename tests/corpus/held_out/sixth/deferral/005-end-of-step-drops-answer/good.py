"""Masked autoencoder; preemptible queue."""
import os
import signal
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard

import spmdguard


@dataclass
class State:
    step: int = 0
    losses: list = field(default_factory=list)


@spmdguard.rank_local
def remember(state, loss):
    state.losses.append(float(loss))
    if len(state.losses) > 1000:
        del state.losses[:500]


def end_of_step(state, loss):
    """Book-keeping every rank does after a step."""
    remember(state, loss)
    state.step += 1
    return spmdguard.sync_should_stop()


def train():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    spmdguard.stop_on_signal(signal.SIGTERM)
    net = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768)).cuda()
    fully_shard(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1.5e-4)
    state = State()
    while state.step < 50_000:
        x = torch.randn(64, 768, device="cuda")
        mask = torch.rand_like(x) > 0.75
        loss = ((net(x * mask) - x) ** 2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if end_of_step(state, loss.detach()):
            break
    dcp.save({"net": net.state_dict()}, checkpoint_id=f"ckpt/last-{state.step}")


if __name__ == "__main__":
    spmdguard.run(train)
