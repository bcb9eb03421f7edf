import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler

from app.data import make_dataset
from app.model import make_model


class Preemption:
    def __init__(self, device):
        self.local, self.device = False, device
        for s in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(s, self._on)

    def _on(self, signum, frame):
        print(f"{socket.gethostname()}: got signal {signum}", flush=True)
        self.local = True

    def __call__(self):
        t = torch.tensor([int(self.local)], device=self.device)
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        return bool(t.item())


def init_from_slurm():
    os.environ.setdefault("RANK", os.environ.get("SLURM_PROCID", "0"))
    os.environ.setdefault("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1"))
    os.environ.setdefault("LOCAL_RANK", os.environ.get("SLURM_LOCALID", "0"))
    if "MASTER_ADDR" not in os.environ:
        names = subprocess.check_output(["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]], text=True)
        os.environ["MASTER_ADDR"] = names.split()[0]
        os.environ["MASTER_PORT"] = str(20000 + int(os.environ["SLURM_JOB_ID"]) % 20000)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cuda:nccl,cpu:gloo")


class RankFiles:
    """root/step-N/{rank}.pt for each rank and a manifest written last by rank 0."""

    def __init__(self, root):
        self.root = Path(root)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def vote(self, ok):
        t = torch.tensor([int(ok)])
        dist.all_reduce(t, op=dist.ReduceOp.MIN)
        return bool(t.item())

    def candidates(self):
        box = [[]]
        if self.rank == 0 and self.root.is_dir():
            steps = [int(m.group(1)) for p in self.root.iterdir() if (m := re.fullmatch(r"step-(\d+)", p.name))]
            for s in sorted(steps, reverse=True):
                with suppress(OSError, ValueError, KeyError):
                    manifest = json.loads((self.root / f"step-{s}" / "manifest.json").read_text())
                    if manifest["world"] == self.world:
                        box[0].append(s)
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def load(self):
        queue = self.candidates()
        while queue:
            step = queue.pop(0)
            blob = None
            try:
                blob = torch.load(self.root / f"step-{step}" / f"{self.rank}.pt", map_location="cpu")
            except Exception as exc:
                print(f"rank {self.rank}: step {step} cannot be read: {exc}", flush=True)
            if self.vote(blob is not None):
                return step, blob
        return 0, None

    def save(self, step, blob, keep=2):
        folder = self.root / f"step-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        tmp, failed = folder / f"{self.rank}.tmp", False
        try:
            torch.save(blob, tmp)
            tmp.replace(folder / f"{self.rank}.pt")
        except OSError as exc:
            print(f"rank {self.rank}: {exc}", flush=True)
            failed = True
        complete = self.vote(not failed)
        if self.rank == 0 and complete:
            (folder / "manifest.json").write_text(json.dumps({"step": step, "world": self.world}))
            done = sorted(int(p.parent.name[5:]) for p in self.root.glob("step-*/manifest.json"))
            for old in done[:-keep]:
                for f in (self.root / f"step-{old}").iterdir():
                    f.unlink(missing_ok=True)
        dist.barrier()
        return complete


def local_shards(sd):
    return {k: v.to_local().cpu() if hasattr(v, "to_local") else v for k, v in sd.items()}


class Trainer:
    def __init__(self, cfg):
        self.cfg, self.device = cfg, torch.device("cuda", torch.cuda.current_device())
        torch.manual_seed(cfg.seed)
        self.model = make_model(cfg).cuda()
        for block in self.model.blocks:
            fully_shard(block)
        fully_shard(self.model)
        self.optim = torch.optim.SGD(self.model.parameters(), lr=cfg.lr)
        data = make_dataset(cfg)
        self.sampler = DistributedSampler(data, seed=cfg.seed, drop_last=True)
        self.loader = DataLoader(data, cfg.batch, sampler=self.sampler, drop_last=True, num_workers=4)
        self.files = RankFiles(cfg.out)
        self.preempted = Preemption(self.device)
        self.step, blob = self.files.load()
        if blob is not None:
            with torch.no_grad():
                for name, p in self.model.named_parameters():
                    p.to_local().copy_(blob["model"][name])

    def checkpoint(self):
        ok = self.files.save(self.step, {"model": local_shards(dict(self.model.named_parameters()))})
        if not ok and dist.get_rank() == 0:
            print(f"checkpoint of step {self.step} is incomplete and was not published", flush=True)

    def run(self):
        """True when finished, False when it was told to go away."""
        per_epoch = len(self.loader)
        while self.step < self.cfg.steps:
            epoch, skip = divmod(self.step, per_epoch)
            self.sampler.set_epoch(epoch)
            for i, (x, y) in enumerate(self.loader):
                if i < skip:
                    continue
                loss = F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
                loss.backward()
                self.optim.step()
                self.optim.zero_grad()
                self.step += 1
                leave = self.preempted()
                if leave or self.step % self.cfg.save_every == 0 or self.step >= self.cfg.steps:
                    self.checkpoint()
                if leave:
                    return False
                if self.step >= self.cfg.steps:
                    break
        return True


def main(cfg):
    init_from_slurm()
    rank = dist.get_rank()
    finished = Trainer(cfg).run()
    dist.barrier()
    dist.destroy_process_group()
    if not finished:
        if rank == 0 and "SLURM_JOB_ID" in os.environ:
            subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]], check=False)
        sys.exit(0)
