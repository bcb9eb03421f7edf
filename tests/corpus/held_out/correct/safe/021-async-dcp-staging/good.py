"""DDP + tensor state with asynchronous distributed checkpoints."""
import logging
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("async-ckpt")


class AsyncCheckpointer:
    """At most one checkpoint in flight; the next save waits for the former one."""

    def __init__(self, root, every):
        self.root, self.every = root, every
        # a group of its own, so that the background thread never mixes with training traffic
        self.group = dist.new_group(backend="gloo", timeout=timedelta(minutes=30))
        self.future = None
        self.waited = 0.0

    def maybe_save(self, step, model, optimizer, last=False):
        if not last and step % self.every != 0:
            return
        self.drain()
        model_state, optim_state = get_state_dict(model, optimizer)
        state = {"model": model_state, "optim": optim_state, "step": torch.tensor(step)}
        self.future = dcp.async_save(state, checkpoint_id=os.path.join(self.root, f"step{step}"),
                                     process_group=self.group)

    def drain(self):
        if self.future is None:
            return
        t0 = time.perf_counter()
        self.future.result()
        self.waited += time.perf_counter() - t0
        self.future = None

    def load(self, path, model, optimizer):
        model_state, optim_state = get_state_dict(model, optimizer)
        state = {"model": model_state, "optim": optim_state, "step": torch.tensor(0)}
        dcp.load(state, checkpoint_id=path, process_group=self.group)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
        return int(state["step"])


def build(device, local):
    net = nn.Sequential(nn.Linear(128, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10))
    model = DDP(net.to(device), device_ids=[local])
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def batches(seed, device):
    g = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(64, 128, generator=g)
        yield x.to(device), (x[:, :10].argmax(1)).to(device)


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(minutes=15))
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.ERROR)
    torch.manual_seed(0)

    model, optimizer = build(device, local)
    saver = AsyncCheckpointer(os.environ.get("CKPT_DIR", "async-ckpt"), every=200)
    start = 0
    resume = os.environ.get("RESUME_FROM")
    if resume:
        start = saver.load(resume, model, optimizer)
        log.info("resumed at step %d", start)

    total = 2000
    stream = batches(rank + 1000 * start, device)
    for step in range(start + 1, total + 1):
        x, y = next(stream)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            log.info("step %d loss %.4f, waited for checkpoints %.1f s", step, loss.item(), saver.waited)
        saver.maybe_save(step, model, optimizer, last=step == total)

    saver.drain()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
