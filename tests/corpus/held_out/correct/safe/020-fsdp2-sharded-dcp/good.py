"""fully_shard model with sharded checkpoints through torch.distributed.checkpoint."""
import os
import re
import shutil
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

ROOT = Path(os.environ.get("CKPT_ROOT", "dcp"))
KEEP = 3


class AppState(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.step = 0

    def state_dict(self):
        model_state, optim_state = get_state_dict(self.model, self.optimizer)
        return {"model": model_state, "optim": optim_state, "step": torch.tensor(self.step)}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
        self.step = int(state["step"])


class Mlp(nn.Module):
    def __init__(self, d=1024, depth=8):
        super().__init__()
        self.inp = nn.Linear(64, d)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.SiLU()) for _ in range(depth))
        self.out = nn.Linear(d, 64)

    def forward(self, x):
        h = self.inp(x)
        for layer in self.layers:
            h = h + layer(h)
        return self.out(h)


def finished_folders():
    if not ROOT.is_dir():
        return []
    found = [p for p in ROOT.iterdir() if re.fullmatch(r"step-\d+", p.name) and (p / ".complete").exists()]
    return sorted(found, key=lambda p: int(p.name.split("-")[1]))


def pick_latest():
    """What to resume from, as rank 0 sees the file system."""
    box = [None]
    if dist.get_rank() == 0:
        folders = finished_folders()
        box[0] = str(folders[-1]) if folders else None
    dist.broadcast_object_list(box, src=0, device=torch.device("cuda", torch.cuda.current_device()))
    return box[0]


def save(app):
    target = ROOT / f"step-{app.step}"
    dcp.save({"app": app}, checkpoint_id=str(target))
    dist.barrier()
    if dist.get_rank() == 0:
        (target / ".complete").touch()
        for old in finished_folders()[:-KEEP]:
            shutil.rmtree(old, ignore_errors=True)
        print(f"checkpoint {target.name} finished")


def restore(app):
    path = pick_latest()
    if path is None:
        return
    dcp.load({"app": app}, checkpoint_id=path)
    if dist.get_rank() == 0:
        print(f"restored {path}, going on from step {app.step}")


def batch(step, rank, device):
    g = torch.Generator().manual_seed(step * 10007 + rank)
    x = torch.randn(32, 64, generator=g)
    return x.to(device), torch.sin(3 * x).to(device)


def train(app, steps, save_every, device):
    rank = dist.get_rank()
    while app.step < steps:
        x, y = batch(app.step, rank, device)
        loss = nn.functional.mse_loss(app.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(app.model.parameters(), 1.0)
        app.optimizer.step()
        app.optimizer.zero_grad()
        app.step += 1
        if app.step % 50 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            full_norm = norm.full_tensor()
            if rank == 0:
                print(f"step {app.step} loss {mean.item():.4f} norm {full_norm.item():.3f}")
        if app.step % save_every == 0 or app.step == steps:
            save(app)


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(minutes=30))
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("shard",))
    torch.manual_seed(31)

    model = Mlp().to(device)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    app = AppState(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    restore(app)
    train(app, steps=2000, save_every=250, device=device)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
