import contextlib
import gc
import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from model import Decoder, DecoderArgs
from data import packed_stream


@dataclass
class Job:
    out: str = "runs/base"
    steps: int = 20_000
    batch: int = 4
    seq: int = 2048
    lr: float = 3e-4
    warmup: int = 500
    log_freq: int = 20
    eval_freq: int = 1000
    eval_batches: int = 50
    save_freq: int = 1000
    keep: int = 2
    gc_freq: int = 100
    init_timeout: int = 1800
    train_timeout: int = 180


def dist_mean(x, mesh):
    t = x.detach().float().clone()
    dist.all_reduce(t, op=dist.ReduceOp.AVG, group=mesh.get_group())
    return t.item()


def dist_max(x, mesh):
    t = x.detach().float().clone()
    dist.all_reduce(t, op=dist.ReduceOp.MAX, group=mesh.get_group())
    return t.item()


class Checkpoints:
    def __init__(self, job):
        self.root, self.job = Path(job.out) / "ckpt", job

    def steps(self):
        if not self.root.is_dir():
            return []
        names = (re.fullmatch(r"step-(\d+)", p.name) for p in self.root.iterdir())
        return sorted(int(m.group(1)) for m in names if m and (self.root / m.group(0) / ".metadata").exists())

    def newest(self):
        found = torch.tensor([-1], dtype=torch.long, device="cuda")
        if dist.get_rank() == 0:
            found[0] = max(self.steps(), default=-1)
        dist.broadcast(found, 0)
        return int(found)

    def load(self, model, optim):
        step = self.newest()
        if step < 0:
            return 0
        m, o = get_state_dict(model, optim)
        state = {"model": m, "optim": o}
        dcp.load(state, checkpoint_id=str(self.root / f"step-{step}"))
        set_state_dict(model, optim, model_state_dict=state["model"], optim_state_dict=state["optim"])
        return step

    def save(self, step, model, optim, last):
        if not last and step % self.job.save_freq:
            return
        m, o = get_state_dict(model, optim)
        dcp.save({"model": m, "optim": o}, checkpoint_id=str(self.root / f"step-{step}"))
        if dist.get_rank() != 0:
            return
        for old in self.steps()[:-self.job.keep]:
            shutil.rmtree(self.root / f"step-{old}", ignore_errors=True)


@torch.no_grad()
def evaluate(model, job, mesh):
    model.eval()
    total, count = torch.zeros((), device="cuda"), 0
    stream = packed_stream("val", job.batch, job.seq, mesh.get_local_rank(), mesh.size(), loop=True)
    for _, (x, y) in zip(range(job.eval_batches), stream):
        total += F.cross_entropy(model(x.cuda()).flatten(0, 1).float(), y.cuda().flatten())
        count += 1
    model.train()
    return dist_mean(total / count, mesh)


def main():
    job = Job()
    dist.init_process_group("nccl", timeout=timedelta(seconds=job.init_timeout))
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank = dist.get_rank()
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("dp",))
    with torch.device("meta"):
        model = Decoder(DecoderArgs())
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for i, layer in enumerate(model.layers):
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=i + 1 < len(model.layers))
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device="cuda")
    model.init_weights()
    optim = torch.optim.AdamW(model.parameters(), lr=job.lr, betas=(0.9, 0.95), fused=True)
    ckpt = Checkpoints(job)
    start = ckpt.load(model, optim)
    log = None
    if rank == 0:
        Path(job.out).mkdir(parents=True, exist_ok=True)
        log = open(Path(job.out) / "metrics.jsonl", "a")
    gc.disable()
    stream = packed_stream("train", job.batch, job.seq, rank, dist.get_world_size(), loop=True, skip=start)
    t0 = time.perf_counter()
    for step in range(start + 1, job.steps + 1):
        if step % job.gc_freq == 0:
            gc.collect(1)
        for g in optim.param_groups:
            g["lr"] = job.lr * min(1.0, step / job.warmup)
        x, y = next(stream)
        loss = F.cross_entropy(model(x.cuda()).flatten(0, 1).float(), y.cuda().flatten())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norm = norm.full_tensor()
        optim.step()
        optim.zero_grad(set_to_none=True)
        if step == start + 1:
            dist.barrier(device_ids=[torch.cuda.current_device()])
            torch.cuda.synchronize()
            dist.distributed_c10d._set_pg_timeout(timedelta(seconds=job.train_timeout), None)
        if step % job.log_freq == 0:
            mean, worst = dist_mean(loss, mesh), dist_max(loss, mesh)
            if log is not None:
                row = dict(step=step, loss=mean, worst=worst, norm=norm.item(), t=time.perf_counter() - t0)
                log.write(json.dumps(row) + "\n")
        if step % job.eval_freq == 0:
            val = evaluate(model, job, mesh)
            if rank == 0:
                print(f"step {step} val {val:.4f}", flush=True)
        ckpt.save(step, model, optim, last=step == job.steps)
    with contextlib.closing(log) if log is not None else contextlib.nullcontext():
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
