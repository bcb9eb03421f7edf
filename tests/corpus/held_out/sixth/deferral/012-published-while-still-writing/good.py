"""Checkpoint writer with asynchronous state save."""
import os
import shutil
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard

import spmdguard


@spmdguard.rank_local(only="main")
def prepare(tmp):
    shutil.rmtree(tmp, ignore_errors=True)
    tmp.mkdir(parents=True)


@spmdguard.rank_local(only="main")
def publish(tmp, final, keep):
    tmp.rename(final)
    done = sorted(final.parent.glob("step-*"))
    for old in done[:-keep]:
        shutil.rmtree(old)


class Saver:
    def __init__(self, root, group, keep=1):
        self.root, self.group, self.keep = Path(root), group, keep

    @spmdguard.collective
    def save(self, model, step):
        tmp = self.root / "writing"
        final = self.root / f"step-{step:07d}"
        prepare(tmp)
        if spmdguard.sync_should_stop():
            return False
        future = dcp.async_save({"model": model.state_dict()}, checkpoint_id=tmp, process_group=self.group)
        future.result()
        dist.barrier()
        publish(tmp, final, self.keep)
        dist.barrier()
        return True


def train(steps=3000):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    saver = Saver("ckpt", dist.new_group(backend="gloo"))
    model = fully_shard(nn.Linear(2048, 2048).cuda())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(1, steps + 1):
        model(torch.randn(16, 2048, device="cuda")).mean().backward()
        opt.step()
        opt.zero_grad()
        if step % 500 == 0 and not saver.save(model, step):
            break
        if spmdguard.sync_should_stop():
            break


if __name__ == "__main__":
    spmdguard.run(train)
