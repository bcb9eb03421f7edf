"""FSDP training that resumes from the newest complete checkpoint."""
import os
import re
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import fully_shard

import spmdguard

ROOT = Path("runs/base")


@spmdguard.rank_local(only="main", default=None)
def newest(root):
    done = [p for p in root.glob("step-*") if (p / "COMPLETE").exists()]
    if not done:
        return None
    return str(max(done, key=lambda p: int(re.findall(r"\d+", p.name)[-1])))


def build():
    layers = [nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(6)]
    for layer in layers:
        fully_shard(layer.cuda())
    return fully_shard(nn.Sequential(*layers))


@spmdguard.collective
def resume(model):
    box = [newest(ROOT)]
    dist.broadcast_object_list(box, src=0)
    found = box[0]
    if found is None:
        return 0
    state = {"model": get_model_state_dict(model)}
    dcp.load(state, checkpoint_id=found)
    set_model_state_dict(model, state["model"])
    return int(found.rsplit("-", 1)[1])


def train(steps=10_000):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    model = build()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    for step in range(resume(model), steps):
        loss = model(torch.randn(32, 512, device="cuda")).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    spmdguard.run(train)
